import { expect, test } from "vitest";
import { missingIn } from "../../bench/browser-missing.ts";

const truth = { texts: ["1", "Customer 1", "10", "Customer 10", "5.00", "5.00"], widgets: ["Open", "Open"] };
const OWN = String.raw`{"text":"1 | Customer 1 | 5.00 | [ref_1] Open\n10 | Customer 10 | 5.00 | [ref_2] Open","elements":"[ref_1] link \"Open\" /1\n[ref_2] link \"Open\" /10"}`;

test("the benchmark of snapshots misses nothing in one that has all", () => {
  expect(missingIn(OWN, truth)).toBe(0);
  const cells = [
    ...truth.texts.map((text) => `- cell "${text}" [ref=e1]`),
    ...truth.widgets.map((name) => `- link "${name}"`),
  ];
  expect(missingIn(cells.join("\n"), truth)).toBe(0);
});

test.each([
  ["a cell whose text is part of others", OWN.replace('"1 |', '" |')],
  ["one of two cells with the same text", OWN.replace("Customer 10 | 5.00", "Customer 10 |")],
  ["a cell of which only the beginning is there", OWN.replace("Customer 10", "Customer…")],
  ["one of two links with the same name", OWN.replace(String.raw`link \"Open\" /10`, "link /10")],
])("the benchmark of snapshots misses %s", (_what, snapshot) => {
  expect(missingIn(snapshot, truth)).toBe(1);
});
