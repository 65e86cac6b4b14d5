import { expect, test } from "vitest";
import { compileGlob } from "../../../../guest/files/glob.ts";

test.each([
  ["*.ts", "a.ts", true],
  ["*.ts", "deep/a.ts", true],
  ["*.ts", "a.tsx", false],
  ["src/*.ts", "src/a.ts", true],
  ["src/*.ts", "src/deep/a.ts", false],
  ["./src/*.ts", "src/a.ts", true],
  ["src/**/*.ts", "src/a.ts", true],
  ["src/**/*.ts", "src/x/y/a.ts", true],
  ["src/**", "src/x/y", true],
  ["**/x/*", "a/x/b", true],
  ["a?c", "abc", true],
  ["a?c/d", "a/c/d", false],
  ["[a-c]x", "bx", true],
  ["[!a-c]x", "bx", false],
  ["[]]x", "]x", true],
  ["{a,b}.{js,ts}", "b.ts", true],
  ["{a,b}.{js,ts}", "c.ts", false],
  ["a,b", "a,b", true],
  ["a.b", "axb", false],
  ["a(b)+|c$", "a(b)+|c$", true],
  ["a-b", "a-b", true],
])("%s on %s: %s", (glob, path, isMatch) => {
  expect(compileGlob(glob)(path)).toBe(isMatch);
});

test.each(["[z-a]", "{a", "x".repeat(2_000)])("refuses %s", (glob) => {
  expect(() => compileGlob(glob)).toThrow(
    expect.objectContaining({ data: expect.objectContaining({ kind: "bad_pattern" }) }),
  );
});
