/** What a test helper was asked to show and could not. Test runners print it like any failed assertion. */
export class TestingError extends Error {
  override readonly name = 'TestingError'
}
