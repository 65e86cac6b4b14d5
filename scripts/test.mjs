// Runs the tests of one tier, after setting up what they need. docs/testing.md has the tiers. Extra arguments go to vitest.
//
//   node scripts/test.mjs                        npm test: what needs nothing but what the product needs
//   node scripts/test.mjs --tier engines         npm run test:engines: engines, databases, machines, other programs
//   node scripts/test.mjs --tier long            npm run test:long: soak, kill rounds, floods, load
//   node scripts/test.mjs --tier all             npm run test:all: every test, then rewrites docs/requirements.md
//   node scripts/test.mjs test/unit -t budget    some tests, of any tier
//   node scripts/test.mjs --report               also prints the slowest files and where the time went
//   node scripts/test.mjs --node 22              on another Node than the one that set it up: 20 (the oldest), 22 or 24
import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { arch } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setUp } from "./setup.mjs";

const ROOT = join(import.meta.dirname, "..");

/** @typedef {{ title: string, projects: readonly string[], files: readonly string[], stages: readonly string[] }} Tier */

/** @type {Record<string, Tier>} */
const TIERS = {
  core: {
    title: "npm test",
    projects: ["unit", "tooling", "integration", "e2e", "escape", "dashboard", "conformance"],
    files: [],
    stages: ["test"],
  },
  engines: {
    title: "npm run test:engines",
    projects: ["users", "programs", "databases", "containers", "vm"],
    files: [],
    stages: ["test", "test-engines"],
  },
  long: {
    title: "npm run test:long",
    projects: ["long"],
    // They do more rounds with OWLCLAW_TEST_LONG=1.
    files: [
      "test/long",
      "test/e2e/sandbox-dialects.test.ts",
      "test/e2e/sandbox-tools.test.ts",
      "test/escape/connection-floods.test.ts",
      "test/escape/fuzz.test.ts",
      "test/escape/gone-clients.test.ts",
      "test/escape/killed-calls.test.ts",
      "test/escape/sandbox-attacks-root.test.ts",
      "test/escape/sandbox-faults",
      "test/escape/sandbox-forged-frames.test.ts",
      "test/escape/sandbox-injection.test.ts",
      "test/escape/token-http.test.ts",
      "test/users/sandbox-faults-user.test.ts",
      "test/escape/browser-storms.test.ts",
      "test/escape/early-sigterm.test.ts",
      "test/integration/ledger-kill.test.ts",
      "test/integration/governance-kill.test.ts",
      "test/integration/governance-files.test.ts",
      "test/dashboard/many-rows.test.ts",
    ],
    stages: ["test", "test-engines"],
  },
};

const options = takeOptions(process.argv.slice(2));
const { tier, node, vitestArgs } = options;
const isPartial = vitestArgs.length > 0;
const isAll = tier === "all";
const wanted = tiersOf(tier, vitestArgs);

for (const stage of new Set(wanted.flatMap(({ stages }) => stages))) await setUp(stage);
const program = node === undefined ? process.execPath : nodeOf(node);
// vitest colours its output in CI as well, where nobody can read the codes.
const plainOutput = process.stdout.isTTY || process.env["FORCE_COLOR"] !== undefined ? {} : { NO_COLOR: "1" };
const vitest = spawn(program, [join(ROOT, "node_modules", "vitest", "vitest.mjs"), "run", ...selection()], {
  cwd: ROOT,
  env: {
    ...process.env,
    ...plainOutput,
    // What the tests start with `node` is the same one.
    PATH: [dirname(program), process.env["PATH"]].join(delimiter),
    OWLCLAW_TEST_TIER: isAll ? "npm run test:all" : (TIERS[tier]?.title ?? tier),
    OWLCLAW_TEST_REQUIREMENTS: isPartial || tier === "long" ? "ignore" : isAll ? "write" : "check",
    ...(isAll || tier === "long" ? { OWLCLAW_TEST_LONG: "1" } : {}),
    ...(options.report ? { OWLCLAW_TEST_FIGURES: "1" } : {}),
  },
  stdio: "inherit",
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.on(signal, () => vitest.kill(signal));
vitest.once("close", (code) => {
  process.exitCode = code ?? 1;
});

/** What vitest is to run: files and projects that are named win over the tier's projects. @returns {string[]} */
function selection() {
  if (vitestArgs.some((arg) => isPath(arg) || arg.startsWith("--project")) || isAll) return [...vitestArgs];
  const [{ projects, files } = fail(`there is no tier ${tier}`)] = wanted;
  if (files.length > 0) return [...files, ...vitestArgs];
  return [...projects.flatMap((name) => ["--project", name]), ...vitestArgs];
}

/** Tiers whose programs the run needs. @param {string} name @param {readonly string[]} args @returns {Tier[]} */
function tiersOf(name, args) {
  if (name === "all") return Object.values(TIERS);
  const tier = TIERS[name] ?? fail(`there is no tier ${name}: ${Object.keys(TIERS).join(", ")} or all`);
  const named = Object.values(TIERS).filter(({ projects }) =>
    projects.some((project) => args.some((arg) => isPath(arg) && arg.includes(`test/${project}`))),
  );
  return named.length > 0 ? named : [tier];
}

/** @param {string} arg */
function isPath(arg) {
  return arg.startsWith("test/") || arg.includes("/test/") || arg.endsWith(".test.ts");
}

/** @param {readonly string[]} args */
function takeOptions(args) {
  const found = { tier: "core", report: false, node: /** @type {string | undefined} */ (undefined) };
  const rest = [...args];
  /** @param {string} flag */
  const take = (flag) => {
    const at = rest.indexOf(flag);
    if (at === -1) return undefined;
    const [, value = fail(`${flag} needs a value, such as ${flag} ${flag === "--node" ? "22" : "engines"}`)] =
      rest.splice(at, 2);
    return value;
  };
  found.tier = take("--tier") ?? found.tier;
  found.node = take("--node");
  const vitestArgs = rest.filter((arg) => arg !== "--report");
  return { ...found, report: vitestArgs.length < rest.length, vitestArgs };
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
