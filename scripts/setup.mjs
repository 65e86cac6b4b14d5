// Sets the clone up: npm packages, build, system packages. Built-in modules only, since it runs before anything is installed.
//
//   node scripts/setup.mjs run        what ./owlclaw needs
//   node scripts/setup.mjs check      what npm run check needs: the npm packages, those of test/clients too
//   node scripts/setup.mjs bench      what npm run bench needs
//   node scripts/setup.mjs engines    what its --runtimes needs beside that
//   node scripts/setup.mjs machines   what its --microvms needs beside that
//   node scripts/setup.mjs databases  what its --shared needs beside that
//   node scripts/setup.mjs test       what npm test needs: npm packages beside those of run, and no system package
//   node scripts/setup.mjs test-engines  what npm run test:engines needs beside that: engines, machines, databases, programs
import { join } from "node:path";
import { announce, SetupError } from "./setup/announce.mjs";
import { ensureBuild, isWritable, readInputs, stampedDigest, writeStamp } from "./setup/build.mjs";
import { ensureDependencies } from "./setup/dependencies.mjs";
import { withLock } from "./setup/lock.mjs";
import { requireNode } from "./setup/node-version.mjs";
import { ensureSystemPackages } from "./setup/system-packages.mjs";

const ROOT = join(import.meta.dirname, "..");
const TEST_FOLDERS = ["test/conformance/runner", "test/clients", "test/nodes"];

/** @type {Record<string, () => Promise<void>>} */
const STAGES = {
  run: prepareRun,
  check: async () => {
    await ensureDependencies(ROOT, ROOT);
    // Tests import the types of the old client.
    await ensureDependencies(ROOT, join(ROOT, "test/clients"));
  },
  bench: async () => {
    await prepareRun();
    await ensureDependencies(ROOT, join(ROOT, "bench"));
    await ensureSystemPackages(ROOT, ["bench"]);
  },
  engines: async () => await ensureSystemPackages(ROOT, ["engines"]),
  machines: async () => await ensureSystemPackages(ROOT, ["machines"]),
  databases: async () => await ensureSystemPackages(ROOT, ["databases"]),
  test: async () => {
    await prepareRun();
    for (const folder of TEST_FOLDERS) await ensureDependencies(ROOT, join(ROOT, folder));
  },
  "test-engines": async () => await ensureSystemPackages(ROOT, ["programs", "engines", "machines", "databases"]),
};

async function prepareRun() {
  const inputs = await readInputs(ROOT);
  await ensureDependencies(ROOT, ROOT);
  await ensureBuild(ROOT, inputs);
  await ensureSystemPackages(ROOT, ["run"]);
  await writeStamp(ROOT, inputs);
}

/** @param {string} name */
export async function setUp(name) {
  try {
    requireNode();
    const stage = STAGES[name];
    if (stage === undefined)
      throw new SetupError(`unknown set-up stage ${name}; stages: ${Object.keys(STAGES).join(", ")}`);
    if (!(await isWritable(ROOT)) && (await stampedDigest(ROOT)) === (await readInputs(ROOT)).digest) return;
    await withLock(join(ROOT, ".cache", "setup.lock"), stage);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    announce(error.message);
    process.exit(1);
  }
}

if (process.argv[1] === import.meta.filename) await setUp(process.argv[2] ?? "run");
