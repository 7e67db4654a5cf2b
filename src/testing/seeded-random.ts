/**
 * Random numbers that a seed repeats exactly: the source of chance in every simulated run. The generator is sfc32
 * (128 bits of state, passes PractRand), seeded by counting and mixing, so that neighbouring seeds have nothing in common.
 */

export interface SeededRandom {
  /** Uniform in [0, 1). */
  next(): number
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number
  /** True with this probability. */
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
  /** A shuffled copy. */
  shuffle<T>(items: readonly T[]): T[]
  /** A generator of its own: what is drawn from it does not move this one. */
  fork(name: string): SeededRandom
}

export function createSeededRandom(seed: number): SeededRandom {
  const next = sfc32(seed)
  const random: SeededRandom = {
    next,
    int: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick(items) {
      const item = items[Math.floor(next() * items.length)]
      if (item === undefined) throw new RangeError('pick() needs at least one item')
      return item
    },
    shuffle(items) {
      const copy = [...items]
      for (let last = copy.length - 1; last > 0; last -= 1) {
        const other = random.int(0, last)
        ;[copy[last], copy[other]] = [copy[other] as (typeof copy)[number], copy[last] as (typeof copy)[number]]
      }
      return copy
    },
    fork: (name) => createSeededRandom(mix(seed ^ hashText(name))),
  }
  return random
}

function sfc32(seed: number): () => number {
  let a = mix(seed)
  let b = mix(seed + 1)
  let c = mix(seed + 2)
  let counter = 1
  const next = (): number => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
  // The first outputs still show the seed.
  for (let round = 0; round < 12; round += 1) next()
  return next
}

/** The finaliser of MurmurHash3 over a counter: one changed bit of the input changes half of the output. */
function mix(value: number): number {
  let x = (Math.imul(value | 0, 0x9e3779b9) + 0x85ebca6b) | 0
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return x ^ (x >>> 16)
}

function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash
}
