/** Opening, closing, and what a storage says it cannot do. */
import type { CaseGroup } from './cases.ts'
import { complete } from './actions.ts'
import { newJob } from './new-job.ts'
import { plain, refusal } from './scene.ts'

export const openingCases: CaseGroup = {
  title: 'opening and closing',
  cases: {
    'opening again is no error and loses nothing': async (scene) => {
      const job = await scene.add()
      await scene.driver.ready()
      await scene.driver.ready()
      scene.expect(await scene.place(job.id)).toBe('pending')
    },

    'a second connection needs no ready() and finds what is there': async (scene) => {
      const job = await scene.add()
      const other = await scene.second()
      scene.expect(await other.inspector.get(job.id)).toMatchObject({ id: job.id, state: 'pending' })
    },

    'a closed storage refuses every call, and closing again is no error': async (scene) => {
      const { driver, expect, runtime } = scene
      const { lease } = await scene.running()
      await driver.close()
      await driver.close()
      const calls: readonly Promise<unknown>[] = [
        driver.ready(),
        driver.enqueue([newJob(runtime)]),
        driver.settle([{ lease, action: complete() }]),
        driver.start([{ lease, policy: plain }]),
        driver.heartbeat({ workerId: 'worker-1', concurrency: 1, runningCount: 0, bufferedCount: 0 }),
        driver.inspector.get(lease.jobId),
      ]
      const codes = await Promise.all(calls.map(refusal))
      expect(codes).toEqual(calls.map(() => 'CHOKAQ_STORAGE_CLOSED'))
    },

    'a kind of transaction that is not supported is refused, and nothing is stored': async (scene) => {
      const { driver, expect, runtime } = scene
      const { supportsAsyncTransactions, supportsSyncTransactions } = driver.capabilities
      const handle = { query: () => undefined }
      if (!supportsAsyncTransactions) {
        expect(await refusal(driver.enqueueIn(handle, [newJob(runtime)]))).toBe('CHOKAQ_TX_UNSUPPORTED')
      }
      if (!supportsSyncTransactions) {
        const call = async (): Promise<unknown> => driver.enqueueSync(handle, [newJob(runtime)])
        expect(await refusal(call())).toBe('CHOKAQ_TX_UNSUPPORTED')
      }
      expect(await scene.all('hot')).toEqual([])
    },
  },
}
