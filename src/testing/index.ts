/** 'chokaq/testing': run jobs in your tests without waiting, and test a storage of your own. */
export { assertEnqueued } from './assert-enqueued.ts'
export { storageConformance } from './conformance/storage-conformance.ts'
export type {
  ConformanceHarness,
  ConformanceSkip,
  ConformanceSubject,
  PlantedMarker,
  TestApi,
} from './conformance/harness.ts'
export { drain, type DrainOptions } from './drain.ts'
export type { FakeFaults } from './fake-faults.ts'
export type { FakeProcesses } from './fake-processes.ts'
export { createFakeRuntime, type FakeRuntime, type FakeRuntimeOptions } from './fake-runtime.ts'
export type { SeededRandom } from './seeded-random.ts'
export { testHandler, type HandlerRun, type World } from './test-handler.ts'
export { TestingError } from './testing-error.ts'
