import { describe, expect, test } from "vitest";

/** What `.ci/run` sets: a suite that cannot run is a failure there, and not a gap that nobody sees. */
const MANDATORY = "OWLCLAW_TEST_MANDATORY";

/** A suite that has to run. Where it cannot, one test in its place says why; in CI that test fails. */
export function describeUnless(reason: string | undefined, name: string, define: () => void): void {
  describe(`${name},`, () => (reason === undefined ? define() : defineReason(reason)));
}

function defineReason(reason: string): void {
  test("it can run here", (context) => {
    if (process.env[MANDATORY] !== "1") context.skip(reason);
    expect.fail(`${reason}, and a run with ${MANDATORY}=1 leaves nothing out`);
  });
}
