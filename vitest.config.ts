import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { LongestFirst } from "./test/setup/longest-first.ts";
import { RunReporter, type RequirementsMode } from "./test/setup/run-reporter.ts";

const SECONDS_MS = 1000;
const CORES = Math.max(2, availableParallelism());

// docs/testing.md has the tiers: scripts/test.mjs chooses projects by their names.
export default defineConfig({
  test: {
    pool: "forks",
    // Most tests wait for other processes most of the time: with a file for each processor, half of the machine is idle.
    maxWorkers: 2 * CORES,
    retry: 0,
    // The runner's default of one second is too short for real processes on a busy machine. A passing test never waits this long.
    expect: { poll: { timeout: 20_000 } },
    sequence: { sequencer: LongestFirst },
    setupFiles: ["test/setup/file-figures.ts"],
    // The tier's summary is the last line of a run.
    reporters: [
      "default",
      new RunReporter({ requirements: requirementsMode(), tier: tierName(), withFigures: figures() }),
    ],
    allowOnly: requirementsMode() === "ignore",
    projects: [
      // Only a test that hangs ever waits so long: what takes seconds takes minutes on a busy machine.
      project("unit", { timeoutSeconds: 120, sharesProcess: true }),
      project("tooling", { timeoutSeconds: 120 }),
      project("integration", { timeoutSeconds: 240 }),
      project("e2e", { timeoutSeconds: 240 }),
      project("escape", { timeoutSeconds: 240 }),
      project("dashboard", { timeoutSeconds: 300 }),
      // Alone: the suite has time-outs of its own that a busy machine would break.
      project("conformance", { timeoutSeconds: 300, isAlone: true }),
      project("users", { timeoutSeconds: 240 }),
      project("programs", { timeoutSeconds: 300 }),
      project("databases", { timeoutSeconds: 240 }),
      // Engines and whole machines in software keep the processors busy: a file for each.
      // One file after another: every Podman of root shares its locks in /dev/shm, and tests kill engines that may hold one.
      project("containers", { timeoutSeconds: 600, order: 2, maxWorkers: 1 }),
      project("vm", { timeoutSeconds: 900, order: 3, maxWorkers: CORES }),
      project("long", { timeoutSeconds: 1800, isAlone: true, order: 4 }),
    ],
  },
});

function project(
  name: string,
  options: { timeoutSeconds: number; isAlone?: boolean; order?: number; sharesProcess?: boolean; maxWorkers?: number },
): TestProjectConfiguration {
  const timeoutMs = options.timeoutSeconds * SECONDS_MS;
  return {
    extends: true,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      exclude: ["**/node_modules/**"],
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      ...(options.isAlone === true ? { fileParallelism: false } : {}),
      ...(options.maxWorkers === undefined ? {} : { maxWorkers: options.maxWorkers }),
      // A process for each file costs more than all unit tests.
      isolate: options.sharesProcess !== true,
      sequence: { groupOrder: options.order ?? (options.isAlone === true ? 1 : 0) },
    },
  };
}

function requirementsMode(): RequirementsMode {
  const mode = process.env["OWLCLAW_TEST_REQUIREMENTS"];
  return mode === "check" || mode === "write" ? mode : "ignore";
}

function tierName(): string {
  return process.env["OWLCLAW_TEST_TIER"] ?? "vitest";
}

function figures(): boolean {
  return process.env["OWLCLAW_TEST_FIGURES"] === "1";
}
