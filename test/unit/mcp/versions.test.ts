import { describe, expect, test } from "vitest";
import { ERROR_KINDS, type ErrorKind } from "../../../src/errors/kinds.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import { traceIdFrom } from "../../../src/mcp/request-observer.ts";
import { assertNegotiable, unsupportedVersion } from "../../../src/mcp/versions.ts";
import { errorAnswer, isToolError, kindOfCode, toWireError, wireCode } from "../../../src/mcp/wire-error.ts";

const kinds = Object.keys(ERROR_KINDS) as ErrorKind[];

describe("versions", () => {
  test.each(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2031-01-01"])(
    "%s can be negotiated",
    (version) => expect(() => assertNegotiable(version)).not.toThrow(),
  );

  test.each(["2024-11-04", "2024", "1.0", "", "2025-11-25 ", "2025-11-25x", 20251125, null, undefined, {}, []])(
    "%j is refused with the list",
    (version) => expect(() => assertNegotiable(version)).toThrow(/2026-07-28, 2025-11-25/),
  );

  test("a long one is not repeated whole", () => {
    const { facts } = unsupportedVersion("9".repeat(10_000));
    expect(JSON.stringify(facts).length).toBeLessThan(300);
  });
});

describe("errors on the wire", () => {
  test("2026-07-28 never sees a code that it forbids", () => {
    // Tool failures are results there, but resources and prompts fail as errors.
    const codes = kinds.map((kind) => wireCode(kind, "2026-07-28"));
    expect(codes.filter((code) => code >= -32005 && code <= -32001)).toEqual([]);
  });

  test("data is the same in every era, and has all that it must", () => {
    const options = { traceId: "t".repeat(32), withStack: false };
    for (const kind of kinds) {
      const error = new OwlError(kind, "what happened", { facts: { limit: 3 } });
      const [old, current] = ["2024-11-05", "2026-07-28"].map(
        (version) => toWireError(error, { ...options, version }).data,
      );
      expect(old).toEqual(current);
      expect(old).toMatchObject({
        message: "what happened",
        trace_id: options.traceId,
        limit: 3,
        retryable: expect.any(Boolean),
      });
      expect(old).not.toHaveProperty("stack");
    }
  });

  test("facts cannot replace kind, message, trace id or retryable", () => {
    const error = new OwlError("timeout", "real", {
      facts: { kind: "x", message: "x", trace_id: "x", retryable: "x" },
    });
    expect(toWireError(error, { version: "2025-11-25", traceId: "t", withStack: false }).data).toMatchObject({
      kind: "timeout",
      message: "real",
      trace_id: "t",
      retryable: true,
    });
  });

  test("which failures are results grows with the revisions", () => {
    const results = (version: string): string[] => kinds.filter((kind) => isToolError(kind, version));
    expect(results("2024-11-05")).toEqual([
      "session_not_found",
      "session_elsewhere",
      "sandbox_taken_over",
      "tool_failure",
    ]);
    expect(results("2025-06-18")).toEqual([
      "session_not_found",
      "session_elsewhere",
      "sandbox_taken_over",
      "tool_failure",
    ]);
    expect(results("2025-11-25").toSorted()).toEqual([
      "invalid_arguments",
      "sandbox_taken_over",
      "session_elsewhere",
      "session_not_found",
      "tool_failure",
    ]);
    expect(results("2026-07-28").toSorted()).toEqual([
      "execution_error",
      "invalid_arguments",
      "resource_limit",
      "sandbox_taken_over",
      "session_elsewhere",
      "session_not_found",
      "timeout",
      "tool_failure",
    ]);
  });

  test("a refusal of the SDK is answered as the kind of its code", () => {
    const options = { version: "2026-07-28", traceId: "t", withStack: false };
    const error = new OwlError(kindOfCode(-32020), "the headers and the body disagree", { facts: { header: "x" } });
    expect(errorAnswer("id", error, options)).toEqual({
      jsonrpc: "2.0",
      id: "id",
      error: {
        code: -32020,
        message: "the headers and the body disagree",
        data: expect.objectContaining({ kind: "header_mismatch", trace_id: "t", retryable: false, header: "x" }),
      },
    });
    expect([-32700, -32601, -32602, -32021, -32022, -1].map(kindOfCode)).toEqual([
      "parse_error",
      "method_not_found",
      "invalid_params",
      "missing_capability",
      "unsupported_version",
      "internal",
    ]);
  });
});

describe("trace ids", () => {
  test("come from a valid traceparent, and are new otherwise", () => {
    const id = "0af7651916cd43dd8448eb211c80319c";
    expect(traceIdFrom(`00-${id}-b7ad6b7169203331-01`)).toBe(id);
    for (const bad of [undefined, "", `00-${"0".repeat(32)}-b7ad6b7169203331-01`, `00-${id}`, "x".repeat(5000), [id]]) {
      const fresh = traceIdFrom(bad);
      expect(fresh).toMatch(/^[0-9a-f]{32}$/);
      expect(fresh).not.toBe(id);
    }
  });
});
