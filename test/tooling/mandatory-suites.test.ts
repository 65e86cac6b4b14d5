import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const SUITE = `import { expect, test } from "vitest";
import { describeUnless } from ${JSON.stringify(join(ROOT, "test/setup/mandatory.ts"))};
describeUnless("there is no engine here", "in containers", () => test("never", () => expect(1).toBe(2)));
describeUnless(undefined, "in bubblewrap", () => test("always", () => expect(1).toBe(1)));
`;

interface Report {
  readonly testResults: readonly { readonly assertionResults: readonly Record<string, unknown>[] }[];
}

/** A run of its own, since a test that fails on purpose would be a failure here. */
describe("a suite that has to run, where it cannot,", () => {
  let folder: string;

  beforeAll(() => {
    mkdirSync(join(ROOT, ".cache"), { recursive: true });
    folder = mkdtempSync(join(ROOT, ".cache/mandatory-"));
    writeFileSync(join(folder, "suite.test.ts"), SUITE);
    writeFileSync(join(folder, "vitest.config.ts"), "export default {};");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function states(env: Readonly<Record<string, string>>): Record<string, unknown>[] {
    const file = join(folder, "report.json");
    const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
    const { OWLCLAW_TEST_MANDATORY: _ours, ...around } = process.env;
    const args = [vitest, "run", "--root", folder, "--reporter=json", `--outputFile=${file}`];
    spawnSync(process.execPath, args, { cwd: folder, env: { ...around, ...env } });
    const { testResults } = JSON.parse(readFileSync(file, "utf8")) as Report;
    return testResults.flatMap(({ assertionResults }) => [...assertionResults]);
  }

  it("is left out with the reason on a contributor's machine, and fails with it in CI; others run", () => {
    const runs = { fullName: "in bubblewrap, always", status: "passed" };
    const cannot = "in containers, it can run here";
    expect(states({})).toMatchObject([{ fullName: cannot, status: "skipped" }, runs]);
    const message = expect.stringContaining(
      "there is no engine here, and a run with OWLCLAW_TEST_MANDATORY=1",
    ) as unknown;
    expect(states({ OWLCLAW_TEST_MANDATORY: "1" })).toMatchObject([
      { fullName: cannot, status: "failed", failureMessages: [message] },
      runs,
    ]);
  });

  it("is one of CI's own runs", () => {
    expect(readFileSync(join(ROOT, ".ci/run"), "utf8")).toContain("export OWLCLAW_TEST_MANDATORY=1");
  });
});
