import { expect, test } from "vitest";
import { type CodeResult, codeFailure } from "../../../src/tools/toolsets/code.ts";
import { shellFailure } from "../../../src/tools/toolsets/shell.ts";

const nothing = { text: "", totalChars: 0 };
const limits = { language: "python", seconds: 60, maxSeconds: 290 } as const;
const failed: CodeResult = {
  status: "error",
  stdout: nothing,
  stderr: nothing,
  error: { name: "NameError", message: "name 'x' is not defined", traceback: "<cell 1>, line 1" },
  pictures: [],
  durationMs: 1,
  interpreterRestarted: false,
  leftRunning: [],
};

test("after a restart the hint says that variables are gone, not that they are there", () => {
  expect(codeFailure(failed, limits)?.hint).toContain("is still there");
  const { hint = "" } = codeFailure({ ...failed, interpreterRestarted: true }, limits) ?? {};
  expect(hint).not.toContain("still there");
  expect(hint).toMatch(/afresh.*set .* again/);
});

test("code that ends itself has no line to point at", () => {
  const error = { name: "SystemExit", message: "the code ended with sys.exit(3)", traceback: "" };
  const { hint = "" } = codeFailure({ ...failed, error }, limits) ?? {};
  expect(hint).not.toContain("traceback");
  expect(hint).toContain("ended itself");
});

test("a command that fails without a word is not said to have one on stderr", () => {
  const exited = {
    status: "exited",
    exitCode: 1,
    signal: null,
    stdout: nothing,
    stderr: nothing,
    durationMs: 1,
    leftRunning: [],
  } as const;
  const seconds = { seconds: 60, maxSeconds: 290 };
  const result = { ...exited, leftRunning: [] };
  expect(shellFailure(result, seconds)?.hint).toContain("nothing to stderr");
  expect(shellFailure({ ...result, stderr: { text: "no", totalChars: 2 } }, seconds)?.hint).toContain("read stderr");
});
