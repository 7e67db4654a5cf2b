import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { bakedModule, bakedStorages } from '../../../scripts/bake-migrations.ts'

describe('baked migrations', () => {
  it('are what the .sql files say', () => {
    const storages = bakedStorages()
    expect(storages.length).toBeGreaterThan(0)
    for (const { folder, module } of storages) expect(readFileSync(module, 'utf8')).toBe(bakedModule(folder))
  })
})
