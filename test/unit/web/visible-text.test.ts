import { describe, expect, test } from "vitest";
import { visibleText } from "../../../web/src/parts/format.ts";

describe("text that operators read", () => {
  test.each([
    ["a control character", "a\u001bb"],
    ["a change of direction", "a\u202eb"],
    ["a mark of direction", "a\u200eb"],
    ["an Arabic mark of direction", "a\u061cb"],
    ["a zero-width space", "a\u200bb"],
    ["a zero-width joiner", "a\u200db"],
    ["a soft hyphen", "a\u00adb"],
    ["a filler of Hangul", "a\u3164b"],
    ["an empty Braille pattern", "a\u2800b"],
    ["a tag character", "a\u{e0041}b"],
    ["half of a pair", "a\ud800b"],
  ])("shows that there is %s", (_what, text) => {
    expect(visibleText(text)).toBe("a\ufffdb");
  });

  test("keeps letters of all scripts, line breaks and tabs", () => {
    const text = "line\n\tλόγος 漢字 עברית é e\u0301";
    expect(visibleText(text)).toBe(text);
  });
});
