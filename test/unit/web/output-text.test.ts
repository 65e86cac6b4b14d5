import { expect, test } from "vitest";
import type { Activity } from "../../../src/operator/activity-log.ts";
import { OutputText, plainLines } from "../../../web/src/views/sandbox/output-text.ts";
import { PrintedText } from "../../../web/src/views/sandbox/printed-text.ts";

const ESC = "\u001b";
const OWN = `${ESC}[100m`;

function entry(changes: Partial<Activity>): Activity {
  return { seq: 1, time: "2026-11-16T12:00:00Z", kind: "shell", call: "c1", ...changes };
}

test.each([
  ["the other screen", `a${ESC}[?1049hb`, "ab"],
  ["an erased screen", `a${ESC}[2J${ESC}[3J${ESC}[Hb`, "ab"],
  ["a move of the cursor", `a${ESC}[5Ab${ESC}[s${ESC}[u${ESC}7${ESC}8${ESC}M`, "ab"],
  ["a full reset", `a${ESC}cb`, "ab"],
  ["a scroll region", `a${ESC}[1;1rb`, "ab"],
  ["other letters", `a${ESC}(0b\u000e\u000f`, "ab"],
  ["a title", `a${ESC}]0;owned\u0007b${ESC}]2;owned${ESC}\\c`, "abc"],
  ["a link", `a${ESC}]8;;http://127.0.0.1:1/\u0007b${ESC}]8;;\u0007`, "ab"],
  ["device control", `a${ESC}P1$r0m${ESC}\\b${ESC}_x${ESC}\\${ESC}^y${ESC}\\${ESC}Xz${ESC}\\`, "ab"],
  ["control characters of one byte more", "a\u009b2Jb\u009d0;owned\u009cc", "a2Jb0;ownedc"],
  ["a sequence in a sequence", `${ESC}${ESC}[2J${ESC}[${ESC}[2Ja`, "[a"],
  ["a background", `a${ESC}[100mb${ESC}[1;48;5;8;4mc${ESC}[48;2;1;2;3md${ESC}[7me`, `ab${ESC}[1m${ESC}[4mcde`],
  ["a background behind half a colour", `${ESC}[38;100ma${ESC}[38:2;48;5;8mb${ESC}[38;5mc`, "abc"],
  ["lines, tabs and what writes over its own line", "a\tb\r\nc\rd\b", "a\tb\r\nc\rd\b"],
  [
    "colours",
    `${ESC}[1;31ma${ESC}[38;5;100mb${ESC}[38;2;100;48;7mc${ESC}[38:5:7md${ESC}[me`,
    `${ESC}[1m${ESC}[31ma${ESC}[38;5;100mb${ESC}[38;2;100;48;7mc${ESC}[38:5:7md${ESC}[me`,
  ],
])("what is printed keeps its text and its colours, and nothing else: %s", (_, printed, left) => {
  expect(new PrintedText().next(printed)).toBe(left);
  // Cut anywhere, it comes to the same.
  for (let at = 1; at < printed.length; at += 1) {
    const parts = new PrintedText();
    expect(parts.next(printed.slice(0, at)) + parts.next(printed.slice(at))).toBe(left);
  }
});

test("a sequence without an end holds nothing back for ever", () => {
  const printed = new PrintedText();
  const shown = printed.next(`${ESC}]0;${"x".repeat(5000)}`) + printed.next("still here");
  expect(shown).toBe(`]0;${"x".repeat(5000)}still here`);
});

test("what was printed cannot swallow, imitate or write over a line of ours", () => {
  const output = new OutputText();
  const shown = [
    output.next(entry({ tool: "shell_exec", by: "eve", text: "$ x\n" })),
    output.next(entry({ stream: "stdout", text: `${OWN}12:00:00 ▸ shell_exec by root${ESC}[0m\n` })),
    output.next(entry({ stream: "stdout", text: `half${ESC}]0;` })),
    // Of the same trace, and so of the same name.
    output.next(entry({ tool: "shell_exec", by: "ada", text: "$ y\n" })),
    output.next(entry({ stream: "stdout", text: `half${ESC}[` })),
    output.next(entry({ kind: "file", tool: "file_read", text: "file_read a\n12:00:00 ▸ shell_exec by root" })),
  ].join("");
  const lines = plainLines(shown).filter(({ text }) => text !== "");
  expect(lines.map(({ text, isOwn }) => [isOwn, text.replace(/^\d{2}:\d{2}:\d{2} /, "")])).toEqual([
    [true, "▸ shell_exec by eve"],
    [false, "$ x"],
    [false, "▸ shell_exec by root"],
    [false, "half"],
    [true, "▸ shell_exec by ada"],
    [false, "$ y"],
    [false, "half"],
    [true, "· file_read a 12:00:00 ▸ shell_exec by root"],
  ]);
  expect(shown.split(OWN)).toHaveLength(4);
});
