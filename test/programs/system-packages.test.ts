import { resolve } from "node:path";
import { expect, test } from "vitest";
import { isDebian, missingPackages } from "../../scripts/setup/system-packages.mjs";
import { describeUnless } from "../setup/mandatory.ts";

const ROOT = resolve(import.meta.dirname, "../..");

// A test whose program is missing is skipped, and says why: good for a contributor, and a hole in a run that has to prove something.
const reason =
  process.getuid?.() === 0 && isDebian() && process.arch === "x64"
    ? undefined
    : "the set-up installs packages as root on Debian, for x64";

describeUnless(reason, "a machine that was set up", () => {
  test("has everything installed that a test needs, so that none is left out", () => {
    expect(missingPackages(ROOT, ["run", "programs", "engines", "machines", "databases"])).toEqual([]);
  });
});
