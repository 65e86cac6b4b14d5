import fc from "fast-check";
import { expect, test } from "vitest";
import { toLine, withoutTerminalControls, displayWidth } from "../../../src/cli/text.ts";
import { renderTable } from "../../../src/cli/table.ts";

const columns = ["NAME", "DESCRIPTION"];

test("columns line up, and the widest cell sets the width", () => {
  const rows = [
    ["a", "first"],
    ["longer", "second"],
  ];
  const table = renderTable({ columns, rows, width: Number.POSITIVE_INFINITY, color: false });
  expect(table).toBe("NAME    DESCRIPTION\na       first\nlonger  second\n");
});

test("a narrow terminal cuts the last column first and marks the cut", () => {
  const rows = [["file_read", "Reads a text file from the workspace"]];
  const table = renderTable({ columns, rows, width: 30, color: false });
  expect(table).toBe("NAME       DESCRIPTION\nfile_read  Reads a text file …\n");
});

test("no line is wider than the terminal, whatever is in the cells", () => {
  const row = fc.tuple(fc.string({ unit: "grapheme", maxLength: 60 }), fc.string({ unit: "binary", maxLength: 200 }));
  fc.assert(
    fc.property(fc.array(row), fc.integer({ min: 10, max: 200 }), (rows, width) => {
      const lines = renderTable({ columns, rows, width, color: false }).split("\n");
      expect(Math.max(...lines.map((line) => displayWidth(line)))).toBeLessThanOrEqual(width);
      expect(lines).toHaveLength(rows.length + 2);
    }),
  );
});

test("a mark that a cell begins with makes nothing of the space before it", () => {
  for (const mark of ["\ufe0f", "\u3099", "\u302a"]) {
    expect(displayWidth(mark)).toBe(0);
    expect(displayWidth(`a  ${mark}b`)).toBe(4);
  }
});

test("Chinese text takes two columns a character, and an emoji too", () => {
  expect(["技能", "a技", "👩‍💻", "é", "e\u0301", "❤️"].map(displayWidth)).toEqual([4, 3, 2, 1, 1, 2]);
  const table = renderTable({ columns, rows: [["订单", "查询订单的状态和物流信息"]], width: 30, color: false });
  expect(table).toBe("NAME  DESCRIPTION\n订单  查询订单的状态和物流信息\n");
  const narrow = renderTable({ columns, rows: [["订单", "查询订单的状态和物流信息"]], width: 20, color: false });
  expect(narrow).toBe("NAME  DESCRIPTION\n订单  查询订单的状…\n");
});

test("colours mark the head only when they are wanted", () => {
  expect(renderTable({ columns, rows: [], width: 80, color: true })).toContain("\u001b[1m");
  expect(renderTable({ columns, rows: [], width: 80, color: false })).not.toContain("\u001b");
});

test("text from outside cannot steer the terminal", () => {
  expect(toLine("a\nb\u001b[2Jc", 80)).toBe("a b\ufffd[2Jc");
  expect(withoutTerminalControls("a\n\tb\u001b]0;x\u0007\u202e")).toBe("a\n\tb\ufffd]0;x\ufffd\ufffd");
});
