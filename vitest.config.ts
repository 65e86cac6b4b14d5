import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { LongestFirst } from "./test/setup/longest-first.ts";
import { RequirementsReporter, type RequirementsMode } from "./test/setup/requirements-reporter.ts";

export default defineConfig({
  test: {
    pool: "forks",
    // The runner's own choice leaves one processor of two idle, and most of our tests wait for other processes.
    maxWorkers: Math.max(2, availableParallelism()),
    retry: 0,
    // The runner's own second is too short for real processes on a busy machine, and who finds it sooner does not wait.
    expect: { poll: { timeout: 20_000 } },
    sequence: { sequencer: LongestFirst },
    // Our reporter comes first, so that a run ends with the runner's own summary.
    reporters: [new RequirementsReporter(requirementsMode()), "default"],
    allowOnly: requirementsMode() === "ignore",
    projects: [
      // Only a test that hangs ever waits so long: what takes seconds takes minutes on a busy machine.
      project("unit", { timeoutSeconds: 120 }),
      project("tooling", { timeoutSeconds: 120 }),
      project("integration", { timeoutSeconds: 240 }),
      project("e2e", { timeoutSeconds: 240 }),
      project("escape", { timeoutSeconds: 240 }),
      project("dashboard", { timeoutSeconds: 300 }),
      project("containers", { timeoutSeconds: 600 }),
      // Alone and last: the suite has time-outs of its own that a busy machine would break.
      project("conformance", { timeoutSeconds: 300, isAlone: true }),
      // Whole machines in software: they get the processors to themselves.
      project("vm", { timeoutSeconds: 900, order: 2 }),
      // Too long for every run: npm run test:long.
      ...(process.env["OWLCLAW_TEST_LONG"] === "1" ? [project("load", { timeoutSeconds: 1800, isAlone: true })] : []),
    ],
  },
});

function project(
  name: string,
  options: { timeoutSeconds: number; isAlone?: boolean; order?: number },
): TestProjectConfiguration {
  const timeoutMs = options.timeoutSeconds * 1000;
  return {
    extends: true,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      exclude: ["**/node_modules/**"],
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      ...(options.isAlone === true ? { fileParallelism: false } : {}),
      sequence: { groupOrder: options.order ?? (options.isAlone === true ? 1 : 0) },
    },
  };
}

function requirementsMode(): RequirementsMode {
  const mode = process.env["OWLCLAW_TEST_REQUIREMENTS"];
  return mode === "check" || mode === "write" ? mode : "ignore";
}
