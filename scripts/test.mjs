// npm test: sets up whatever the tests need, then runs them. Extra arguments go to vitest and make the run a partial one.
//
//   node scripts/test.mjs                        every test; fails when a proven criterion is no longer proven
//   node scripts/test.mjs --write-requirements   every test, then rewrites docs/requirements.md
//   node scripts/test.mjs test/unit -t budget    some tests
import { spawn } from "node:child_process";
import { join } from "node:path";
import { setUp } from "./setup.mjs";

const ROOT = join(import.meta.dirname, "..");
const WRITE = "--write-requirements";

const args = process.argv.slice(2).filter((arg) => arg !== WRITE);
const requirements = args.length > 0 ? "ignore" : process.argv.includes(WRITE) ? "write" : "check";

// vitest colours its output in CI as well, where nobody can read the codes.
const plainOutput = process.stdout.isTTY || process.env["FORCE_COLOR"] !== undefined ? {} : { NO_COLOR: "1" };

await setUp("test");
const vitest = spawn(process.execPath, [join(ROOT, "node_modules", "vitest", "vitest.mjs"), "run", ...args], {
  cwd: ROOT,
  env: { ...process.env, ...plainOutput, OWLCLAW_TEST_REQUIREMENTS: requirements },
  stdio: "inherit",
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.on(signal, () => vitest.kill(signal));
vitest.once("close", (code) => {
  process.exitCode = code ?? 1;
});
