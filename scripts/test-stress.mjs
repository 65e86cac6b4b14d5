// npm run test:stress -- FILE [--times N] [--busy N]: runs test files many times beside processes that keep cores busy.
//
//   npm run test:stress -- test/unit/config/load.test.ts              20 runs, one busy process for each core
//   npm run test:stress -- test/e2e/metrics.test.ts --times 50        50 runs
//   npm run test:stress -- test/e2e/metrics.test.ts --busy 0          an otherwise idle machine
//   npm run test:stress -- test/e2e/metrics.test.ts -t pool           one test of the file
//
// Every run is counted, also after a failure. The output of failed runs is kept in .cache/test-stress.
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";

const ROOT = join(import.meta.dirname, "..");
const LOGS = join(ROOT, ".cache", "test-stress");
const BUSY_LOOP = "for (;;);";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    times: { type: "string", default: "20" },
    busy: { type: "string", default: String(availableParallelism()) },
    testNamePattern: { type: "string", short: "t" },
  },
});
const times = countOf("--times", values.times, 1);
const busy = countOf("--busy", values.busy, 0);
if (positionals.length === 0) fail("name the test files: npm run test:stress -- test/unit/config/load.test.ts");

rmSync(LOGS, { recursive: true, force: true });
const loops = Array.from({ length: busy }, () => spawn(process.execPath, ["-e", BUSY_LOOP], { stdio: "ignore" }));
process.once("exit", () => loops.forEach((loop) => loop.kill("SIGKILL")));
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.once(signal, () => process.exit(130));

const pattern = values.testNamePattern === undefined ? [] : ["-t", values.testNamePattern];
/** @type {number[]} */
const failed = [];
for (let run = 1; run <= times; run += 1) {
  const startMs = Date.now();
  const { code, output } = await runTests();
  if (code !== 0) {
    failed.push(run);
    mkdirSync(LOGS, { recursive: true });
    writeFileSync(join(LOGS, `${run}.log`), output);
  }
  const verdict = code === 0 ? "passed" : `FAILED: ${relative(ROOT, join(LOGS, `${run}.log`))}`;
  console.log(`run ${run} of ${times} ${verdict} (${Date.now() - startMs} ms)`);
}
console.log(
  `test:stress: ${times - failed.length} of ${times} runs passed beside ${busy} busy ${busy === 1 ? "process" : "processes"}`,
);
process.exit(failed.length === 0 ? 0 : 1);

/** @returns {Promise<{ code: number, output: string }>} */
function runTests() {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, "scripts", "test.mjs"), ...positionals, ...pattern], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.once("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

/** @param {string} flag @param {string} text @param {number} least */
function countOf(flag, text, least) {
  const count = Number(text);
  if (!Number.isInteger(count) || count < least) fail(`${flag} takes a whole number from ${least}, not ${text}`);
  return count;
}

/**
 * @param {string} reason
 * @returns {never}
 */
function fail(reason) {
  console.error(`test:stress: ${reason}`);
  process.exit(2);
}
