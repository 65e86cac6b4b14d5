import { expect, test } from "vitest";
import { readTraceContext, readTracestate } from "../../../src/telemetry/tracing/trace-context.ts";

const TRACEPARENT = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

test("goes on as it came, in its order, without the spaces between its members and without empty ones", () => {
  expect(readTracestate("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")).toBe("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  expect(readTracestate(" rojo=1 ,\tcongo= a b ,, tenant@vendor=x/y")).toBe("rojo=1,congo= a b,tenant@vendor=x/y");
});

test("counts only beside a traceparent that is one", () => {
  expect(readTraceContext({ traceparent: TRACEPARENT, tracestate: "a=1" })?.state).toBe("a=1");
  expect(readTraceContext({ traceparent: "00-nothing", tracestate: "a=1" })).toBeUndefined();
  expect(readTraceContext({ tracestate: "a=1" })).toBeUndefined();
  expect(readTraceContext({ traceparent: TRACEPARENT, tracestate: "no good" })).toEqual(
    readTraceContext({ traceparent: TRACEPARENT }),
  );
});

const members = (count: number, value: string): string =>
  Array.from({ length: count }, (_, index) => `k${index}=${value}`).join(",");

test("of too much, long members go first and then the last ones", () => {
  const long = `long=${"x".repeat(200)}`;
  const short = members(30, "0123456789");
  expect(`${long},${short}`.length).toBeGreaterThan(512);
  expect(readTracestate(`${long},${members(5, "1")}`)).toBe(`${long},${members(5, "1")}`);
  expect(readTracestate(`${long},${short}`)).toBe(short);
  const many = readTracestate(members(32, "x".repeat(30))) ?? "";
  expect(many.length).toBeLessThanOrEqual(512);
  expect(members(32, "x".repeat(30)).startsWith(`${many},k`)).toBe(true);
});

test.each([
  ["no text", 1],
  ["several texts", ["a=1"]],
  ["an empty text", ""],
  ["nothing but commas", " , ,"],
  ["a member without a value", "a"],
  ["an empty value", "a="],
  ["capitals in a key", "A=1"],
  ["a key that is too long", `${"a".repeat(257)}=1`],
  ["a value that is too long", `a=${"x".repeat(257)}`],
  ["two equals signs", "a=1=2"],
  ["a new line", "a=1\r\nx-evil: 1"],
  ["what is not ASCII", "a=é"],
  ["one bad member among good ones", "a=1,?=2"],
  ["33 members", members(33, "1")],
  ["megabytes", `a=${"1,".repeat(2_000_000)}`],
])("drops %s", (_, value) => {
  expect(readTracestate(value)).toBeUndefined();
});
