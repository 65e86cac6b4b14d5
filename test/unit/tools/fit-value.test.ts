import fc from "fast-check";
import { expect, test } from "vitest";
import { fitValue } from "../../../src/tools/fit-value.ts";

test("a value that fits is left as it is", () => {
  const value = { stdout: "hello", exit_code: 0 };
  expect(fitValue(value, 1000)).toEqual({ value, json: JSON.stringify(value) });
});

test("the longest text is cut first, with its head, its tail and how much is missing", () => {
  const value = { stdout: `start${"x".repeat(5000)}end`, stderr: "short" };
  const fitted = fitValue(value, 1000);
  expect(fitted.json.length).toBeLessThanOrEqual(1000);
  expect(fitted.value).toMatchObject({
    stderr: "short",
    stdout: expect.stringMatching(/^start.*characters cut.*end$/s) as unknown,
  });
});

test("a list loses its last entries and the result says so", () => {
  const entries = Array.from({ length: 500 }, (_, index) => ({ path: `file-${index}` }));
  const { value, json } = fitValue({ entries }, 2000);
  expect(json.length).toBeLessThanOrEqual(2000);
  expect(value["entries"]).toEqual(entries.slice(0, (value["entries"] as unknown[]).length));
  expect(value).toMatchObject({ is_truncated: true, note: expect.stringContaining("left out") as unknown });
});

test("whatever goes in, JSON that parses and fits comes out", () => {
  const texts = fc.string({ maxLength: 20_000, unit: "binary" });
  fc.assert(
    fc.property(texts, texts, fc.array(texts, { maxLength: 20 }), (stdout, stderr, lines) => {
      const { value, json } = fitValue({ stdout, stderr, lines, nested: { deep: [{ stdout }] } }, 3000);
      expect(json.length).toBeLessThanOrEqual(3000);
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 50 },
  );
});
