import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONTROL_ATTACKS } from "../escape/sandbox-control-attacks.ts";

const ROOT = join(import.meta.dirname, "..", "..");

interface Row {
  readonly kind: string;
  readonly attacks: readonly string[];
  readonly proofs: readonly string[];
  readonly files: readonly string[];
}

/** The table below "Attacks" in docs/security.md. */
function readRows(): Row[] {
  const section = /\n## Attacks\n(.*?)\n## /s.exec(readFileSync(join(ROOT, "docs/security.md"), "utf8"))?.[1] ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("| "));
  return lines.slice(1).map((line) => {
    const [kind = "", attacks = "", proofs = "", files = ""] = line.slice(2).split(" | ");
    return { kind, attacks: quoted(attacks), proofs: quoted(proofs), files: quoted(files) };
  });
}

function quoted(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text);
}

function sourceOf(name: string): string {
  const folders = ["test/escape", "test/users", "test/programs"].map((folder) => join(ROOT, folder));
  const paths = folders.flatMap((folder) => [join(folder, `${name}.ts`), join(folder, `${name}.test.ts`)]);
  const file = paths.find((path) => existsSync(path));
  return file === undefined ? "" : readFileSync(file, "utf8");
}

const ROWS = readRows();

describe("the table of attacks", () => {
  it("has every kind that sandboxes must withstand", () => {
    expect(ROWS.map(({ kind }) => kind)).toEqual(expect.arrayContaining(Object.keys(CONTROL_ATTACKS)));
    expect(ROWS.length).toBeGreaterThanOrEqual(25);
  });

  it.each(ROWS)("names at least three of $kind, and what is switched off, as the tests do", (row) => {
    const sources = row.files.map(sourceOf);
    expect(row.files.filter((_file, index) => sources[index] === "")).toEqual([]);
    const isThere = (text: string): boolean => sources.some((source) => source.includes(text));
    expect([...row.attacks, ...row.proofs].filter((text) => !isThere(text))).toEqual([]);
    expect(row.attacks.length).toBeGreaterThanOrEqual(3);
    expect(row.proofs.length).toBeGreaterThanOrEqual(1);
  });

  it.each(Object.entries(CONTROL_ATTACKS))("leaves out none of %s", (kind, attacks) => {
    const row = ROWS.find((each) => each.kind === kind);
    expect(row?.attacks).toEqual(Object.keys(attacks));
    const controls = new Set(Object.values(attacks).flatMap(({ off }) => off));
    expect(new Set(row?.proofs)).toEqual(controls);
  });
});
