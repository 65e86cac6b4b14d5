import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

test("[003-NFR-001] every dependency says what it is for, run-time ones also why we cannot do without, and none is listed that is gone", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
  const sections = read("docs/decisions/dependencies.md").split("\n## ");
  const listed = (title: string, cells: number): string[] =>
    (sections.find((section) => section.startsWith(title)) ?? "")
      .split("\n")
      .filter((line) => line.startsWith("| `") && line.split("|").filter((cell) => cell.trim() !== "").length === cells)
      .flatMap((line) => [...(line.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name))
      .toSorted();
  expect(listed("At run time", 3)).toEqual(Object.keys(dependencies ?? {}).toSorted());
  const bundled = listed("In the bundle", 3);
  expect([...bundled, ...listed("For development", 2)].toSorted()).toEqual(
    Object.keys(devDependencies ?? {}).toSorted(),
  );
  expect(Object.keys(dependencies ?? {}).length + bundled.length).toBeLessThanOrEqual(17);
});
