import { expect, test } from "vitest";
import { readTraceparent, toTraceparent, traceContextIn } from "../../../src/telemetry/tracing/trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("a traceparent as the standard wants it is read, and written the same", () => {
  for (const isSampled of [true, false]) {
    const context = { traceId: TRACE, spanId: SPAN, isSampled };
    expect(readTraceparent(toTraceparent(context))).toEqual(context);
  }
});

test("a later version may say more", () => {
  expect(readTraceparent(`cc-${TRACE}-${SPAN}-01-what-comes-next`)).toMatchObject({ traceId: TRACE });
});

test.each([
  ["nothing", undefined],
  ["no text", { traceparent: 1 }],
  ["an empty text", ""],
  ["a trace of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["capitals", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["the forbidden version", `ff-${TRACE}-${SPAN}-01`],
  ["more than version 00 has", `00-${TRACE}-${SPAN}-01-more`],
  ["a trace that is too short", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["two values", `00-${TRACE}-${SPAN}-01,00-${TRACE}-${SPAN}-01`],
  ["a new line", `00-${TRACE}-${SPAN}-01\n`],
  ["a script", `00-<script>${TRACE.slice(8)}-${SPAN}-01`],
  ["megabytes", `00-${TRACE}-${SPAN}-01${"-".repeat(2_000_000)}`],
])("ignores %s", (_, value) => {
  expect(readTraceparent(value)).toBeUndefined();
});

test("is found in _meta, whatever else is there", () => {
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  expect(traceContextIn({ _meta: { traceparent, progressToken: 1 } })).toMatchObject({ spanId: SPAN });
  for (const params of [undefined, {}, { _meta: null }, { _meta: "x" }, { _meta: [traceparent] }])
    expect(traceContextIn(params)).toBeUndefined();
});
