/** How long a test waits for what comes at once on a machine that is not busy. For `expect.poll` and `vi.waitFor`. */
export const soon = { timeout: 10_000 } as const
