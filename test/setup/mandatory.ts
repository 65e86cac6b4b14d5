import { existsSync } from "node:fs";
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

/** Why a test cannot make a network namespace with addresses of its own; nothing when it can. */
export const NETWORK_MISSING: string | undefined =
  process.getuid?.() !== 0
    ? "only root can make a network to test in"
    : ["/usr/sbin/ip", "/usr/bin/ip", "/sbin/ip"].some((program) => existsSync(program))
      ? undefined
      : "the Debian package iproute2 is not installed";
