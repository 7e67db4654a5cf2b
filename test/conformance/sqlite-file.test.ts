import { storageConformance } from 'chokaq/testing'
import { inFile } from './sqlite-harness.ts'

// The default storage, with two connections at one file.
storageConformance(inFile())
