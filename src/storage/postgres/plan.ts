/** What installing would do, as a script to read or to run with the rights of somebody else. Writes nothing. */
import { type MigrationPlan, planOf } from '../migration.ts'
import { connect } from './connection.ts'
import { findSchema, openingTexts, preparingTexts, stepTexts } from './install.ts'
import { migrations } from './migrations.ts'
import { targetOf } from './pg-driver.ts'
import { translated } from './postgres-errors.ts'
import { defaultSchema, SchemaName } from './schema-name.ts'

const deadlineMs = 5_000

export async function planMigrations(url: string, options: { readonly schema?: string } = {}): Promise<MigrationPlan> {
  const schema = new SchemaName(options.schema ?? defaultSchema)
  const target = targetOf(url)
  const { location } = target
  const settings = { target, durability: 'full', isPooled: false, statementDeadlineMs: deadlineMs } as const
  try {
    const limits = { lockTimeoutMs: deadlineMs, connectDeadlineMs: deadlineMs }
    const connection = await connect({ ...settings, ...limits }, 'plan', () => undefined)
    try {
      const found = await findSchema(connection, { schema, location })
      return planOf(location, migrations, found.version, (pending) => [
        ...openingTexts(schema),
        ...preparingTexts(schema, found),
        ...pending.flatMap((migration) => stepTexts(schema, migration)),
        'COMMIT',
      ])
    } finally {
      await connection.close()
    }
  } catch (error) {
    throw translated(error, location, deadlineMs)
  }
}
