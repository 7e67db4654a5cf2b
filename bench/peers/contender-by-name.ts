/** A contender's library is loaded with its first use, so that a process holds one of them alone. */
import type { Contender, ContenderName, Place } from './contender.ts'

export async function contenderOf(name: ContenderName, place: Place): Promise<Contender> {
  switch (name) {
    case 'chokaq':
      return new (await import('./contenders/chokaq.ts')).ChokaQContender(place)
    case 'graphile-worker':
      return new (await import('./contenders/graphile-worker.ts')).GraphileWorkerContender(place)
    case 'pg-boss':
      return new (await import('./contenders/pg-boss.ts')).PgBossContender(place)
    case 'bullmq on redis':
      return new (await import('./contenders/bullmq.ts')).BullmqContender(place, 'redis')
    case 'bullmq on postgres':
      return new (await import('./contenders/bullmq.ts')).BullmqContender(place, 'postgres')
  }
}
