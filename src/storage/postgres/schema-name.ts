/**
 * The schema that holds the tables. Statements are written with its default name, `chokaq.`, which makes them plain SQL
 * to read and to try; where another one is configured, every such prefix is replaced. No statement may contain the
 * prefix for another purpose.
 */
import { ChokaQError } from '../../core/errors.ts'

export const defaultSchema = 'chokaq'
/** PostgreSQL cuts longer names without a word, and two of them would be one. */
const maxNameBytes = 63

export class SchemaName {
  readonly name: string
  /** As an identifier in SQL, whatever characters it has. */
  readonly quoted: string
  readonly #texts = new Map<string, string>()

  constructor(name: string) {
    if (typeof name !== 'string' || name === '' || name.includes('\0') || Buffer.byteLength(name) > maxNameBytes) {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'schema',
        value: JSON.stringify(name) ?? 'undefined',
        expected: `a name of 1 to ${maxNameBytes} bytes`,
      })
    }
    this.name = name
    this.quoted = `"${name.replaceAll('"', '""')}"`
  }

  /** A statement with the prefixes of this schema. Texts are constants, so each is made once. */
  apply(sql: string): string {
    if (this.name === defaultSchema) return sql
    const known = this.#texts.get(sql)
    if (known !== undefined) return known
    // At the beginning of a text ('chokaq.lease_token') the name is quoted for both.
    const made = sql.replace(/('?)\bchokaq\./g, (_, quote: string) => {
      return quote === '' ? `${this.quoted}.` : `'${this.quoted.replaceAll("'", "''")}.`
    })
    this.#texts.set(sql, made)
    return made
  }
}
