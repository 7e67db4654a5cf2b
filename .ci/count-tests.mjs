// Reads the JSON report of a vitest run and prints '<passed> <failed>'. A report that is missing or broken, a file that
// failed before its first test, and a failed run without a failed test (an unhandled rejection, say) each count as one
// failure, so that nothing that went wrong is counted as nothing.
// Usage: node .ci/count-tests.mjs <report.json> <exit code of the run>
import { readFileSync } from 'node:fs'

const [reportPath, exitCode] = process.argv.slice(2)

function count() {
  let report
  try {
    report = JSON.parse(readFileSync(reportPath, 'utf8'))
  } catch {
    return { passed: 0, failed: 1 }
  }
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const failed = report.numFailedTests + brokenFiles
  return { passed: report.numPassedTests, failed: failed === 0 && exitCode !== '0' ? 1 : failed }
}

const { passed, failed } = count()
console.log(`${passed} ${failed}`)
