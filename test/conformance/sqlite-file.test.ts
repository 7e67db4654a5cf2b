import { storageConformance } from '../../src/testing/conformance/storage-conformance.ts'
import { inFile } from './sqlite-harness.ts'

// The default storage, with two connections at one file.
storageConformance(inFile())
