// npm test: sets up whatever the tests need, then runs them. Extra arguments go to vitest and make the run a partial one.
//
//   node scripts/test.mjs                        every test; fails when a proven criterion is no longer proven
//   node scripts/test.mjs --write-requirements   every test, then rewrites docs/requirements.md
//   node scripts/test.mjs test/unit -t budget    some tests
//   node scripts/test.mjs --node 22              every test, on another Node than the one that set it up: 20 (the oldest), 22 or 24
import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { arch } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setUp } from "./setup.mjs";

const ROOT = join(import.meta.dirname, "..");
const WRITE = "--write-requirements";
const NODE = "--node";

const [line, given] = takeLine(process.argv.slice(2));
const args = given.filter((arg) => arg !== WRITE);
const requirements = args.length > 0 ? "ignore" : process.argv.includes(WRITE) ? "write" : "check";

// vitest colours its output in CI as well, where nobody can read the codes.
const plainOutput = process.stdout.isTTY || process.env["FORCE_COLOR"] !== undefined ? {} : { NO_COLOR: "1" };

await setUp("test");
const node = line === undefined ? process.execPath : nodeOf(line);
const vitest = spawn(node, [join(ROOT, "node_modules", "vitest", "vitest.mjs"), "run", ...args], {
  cwd: ROOT,
  env: {
    ...process.env,
    ...plainOutput,
    // What the tests start with `node` is the same one.
    PATH: [dirname(node), process.env["PATH"]].join(delimiter),
    OWLCLAW_TEST_REQUIREMENTS: requirements,
  },
  stdio: "inherit",
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.on(signal, () => vitest.kill(signal));
vitest.once("close", (code) => {
  process.exitCode = code ?? 1;
});

/**
 * @param {readonly string[]} given
 * @returns {[line: string | undefined, rest: readonly string[]]}
 */
function takeLine(given) {
  const at = given.indexOf(NODE);
  if (at === -1) return [undefined, given];
  const found = given[at + 1];
  if (found === undefined) fail(`${NODE} needs a line of Node, such as ${NODE} 22`);
  return [found, given.toSpliced(at, 2)];
}

/**
 * Where everybody may run it and no sandbox has a folder of its own: not in a home, and not below /tmp.
 *
 * @param {string} line
 */
function nodeOf(line) {
  const program = join(ROOT, "test/nodes/node_modules", `node-${line}-linux-${arch()}`, "bin/node");
  if (!existsSync(program)) fail(`there is no Node ${line} in test/nodes/package.json for this machine`);
  const folder = mkdtempSync("/var/tmp/owlclaw-node-");
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  copyFileSync(program, join(folder, "node"));
  return join(folder, "node");
}

/**
 * @param {string} reason
 * @returns {never}
 */
function fail(reason) {
  console.error(`npm test: ${reason}`);
  process.exit(2);
}
