import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServerProcess, startServer } from "./server-process.ts";
import { type ScenarioResult, type Selection, countChecks, describeChecks, runSuite } from "./suite.ts";

const SUITE_TIMEOUT_MS = 180_000;

/** Nothing listens on the discard port of loopback. */
const NOBODY = "http://127.0.0.1:9/mcp";

/** Scenarios that may skip, and why. Everything else that skips fails the test. */
const MAY_SKIP: Readonly<Record<string, string>> = {
  "tasks-status-notifications": "the suite always skips it: its own harness waits for a rewrite",
};

interface Run {
  readonly title: string;
  readonly selection: Selection;
  readonly scenarios: number;
  readonly successes: number;
}

const RUNS: readonly Run[] = [
  { title: "what 2025-11-25 requires", selection: ["--requirements", "2025-11-25"], scenarios: 33, successes: 83 },
  { title: "what 2026-07-28 requires", selection: ["--requirements", "2026-07-28"], scenarios: 50, successes: 196 },
  { title: "every scenario of the suite", selection: ["--suite", "all"], scenarios: 65, successes: 275 },
];

/** The suite adds this check to every scenario; where no message was exchanged, it succeeds for nothing. */
const ADDED_CHECK = "wire-schema-valid";

/** A scenario counts as exercised when at least one check of its own succeeded and none is in doubt. */
function isExercised({ checks }: ScenarioResult): boolean {
  const hasSuccess = checks.some(({ id, status }) => status === "SUCCESS" && id !== ADDED_CHECK);
  return hasSuccess && !checks.some(({ status }) => status === "FAILURE" || status === "WARNING");
}

function notExercised(results: readonly ScenarioResult[]): readonly string[] {
  return results.filter((result) => !isExercised(result)).map(({ scenario }) => scenario);
}

describe("official conformance suite", () => {
  let server: ServerProcess;

  beforeAll(async () => {
    server = await startServer();
  });

  afterAll(async () => {
    await server?.stop();
  });

  test("the server under test answers", async () => {
    const response = await fetch(new URL("/health", server.origin));
    expect(response.status).toBe(200);
  });

  test.for(RUNS)(
    "[000-R1.4] [004-R4.2] passes $title",
    { timeout: SUITE_TIMEOUT_MS },
    async ({ selection, scenarios, successes }) => {
      const results = await runSuite(`${server.origin}/mcp`, selection);

      expect(describeChecks(results, "FAILURE")).toEqual([]);
      expect(describeChecks(results, "WARNING")).toEqual([]);
      expect(describeChecks(results, "SKIPPED").filter((line) => !mayBeSkipped(line))).toEqual([]);
      expect(notExercised(results).filter((scenario) => !(scenario in MAY_SKIP))).toEqual([]);
      expect(results.length).toBe(scenarios);
      expect(countChecks(results, "SUCCESS")).toBeGreaterThanOrEqual(successes);
    },
  );
});

describe("what these tests call exercised", () => {
  test("no scenario is when there is no server", { timeout: SUITE_TIMEOUT_MS }, async () => {
    const results = await runSuite(NOBODY, ["--suite", "all"]);

    expect(results.length).toBeGreaterThan(0);
    expect(notExercised(results)).toEqual(results.map(({ scenario }) => scenario));
  });
});

function mayBeSkipped(line: string): boolean {
  return Object.keys(MAY_SKIP).some((scenario) => line.startsWith(`${scenario} / `));
}
