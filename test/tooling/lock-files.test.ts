import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isFor, LOCK_FILES, type LockedPackage, withoutIntegrity } from "../../scripts/setup/lock-entries.mjs";

const ROOT = join(import.meta.dirname, "../..");
/** What the server runs on, and its tests. */
const MACHINES = [
  { os: "linux", cpu: "x64" },
  { os: "linux", cpu: "arm64" },
];
/** Not at every registry mirror: microVMs on arm64 are not tested, and set-up warns before it installs it. */
const KNOWN_GAPS: ReadonlySet<string> = new Set(["node_modules/@superradcompany/microsandbox-linux-arm64-gnu"]);

function packagesOf(path: string): Readonly<Record<string, LockedPackage>> {
  return (JSON.parse(readFileSync(join(ROOT, path), "utf8")) as { packages: Record<string, LockedPackage> }).packages;
}

describe.each(LOCK_FILES)("%s", (path) => {
  test("has the integrity of every package that is installed on a machine that we support", () => {
    const packages = packagesOf(path);
    const missing = withoutIntegrity(packages).filter((name) =>
      MACHINES.some((machine) => isFor(packages[name] ?? {}, machine)),
    );
    expect(missing.filter((name) => !KNOWN_GAPS.has(name))).toEqual([]);
  });

  test("lacks it only for optional packages of other systems", () => {
    const packages = packagesOf(path);
    for (const name of withoutIntegrity(packages))
      expect([name, packages[name]]).toEqual([
        name,
        expect.objectContaining({ optional: true, os: expect.any(Array) }),
      ]);
  });

  test("names no registry", () => {
    expect(readFileSync(join(ROOT, path), "utf8")).not.toMatch(/"resolved": "[a-z+]+:/);
  });
});
