import { describe, expect, test } from "vitest";
import { assertMirrored, decodeHeader } from "../../../src/mcp/mirror-headers.ts";
import type { JsonRpcRequest } from "../../../src/mcp/json-rpc.ts";

const VERSION = "2026-07-28";

function call(name: string): JsonRpcRequest {
  return {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  };
}

const headers = (name: string | undefined) => ({ version: VERSION, method: "tools/call", name });
const refusal = (kind: string): unknown => expect.objectContaining({ kind });

describe("headers that mirror the body", () => {
  test("pass as they are, and in base64", () => {
    expect(() => assertMirrored(call("echo"), headers("echo"))).not.toThrow();
    expect(() => assertMirrored(call("echo"), headers("=?base64?ZWNobw==?="))).not.toThrow();
  });

  test("are refused when they are missing or say something else", () => {
    for (const name of [undefined, "", "ECHO", "echo ", "=?base64?ZWNo?=", "=?base64?%%?="])
      expect(() => assertMirrored(call("echo"), headers(name))).toThrow(refusal("header_mismatch"));
    const good = headers("echo");
    expect(() => assertMirrored(call("echo"), { ...good, method: undefined })).toThrow(refusal("header_mismatch"));
    expect(() => assertMirrored(call("echo"), { ...good, version: undefined })).toThrow(refusal("header_mismatch"));
    expect(() => assertMirrored(call("echo"), { ...good, version: "2025-11-25" })).toThrow(refusal("header_mismatch"));
  });

  test("a name that looks like base64 must be encoded itself: a proxy would read another name", () => {
    const name = "=?base64?ZWNobw==?=";
    expect(() => assertMirrored(call(name), headers(name))).toThrow(refusal("header_mismatch"));
    const encoded = `=?base64?${Buffer.from(name).toString("base64")}?=`;
    expect(() => assertMirrored(call(name), headers(encoded))).not.toThrow();
  });

  test("are decoded as UTF-8, and only in full", () => {
    expect(decodeHeader("=?base64?w6RnYQ==?=")).toBe("äga");
    expect(decodeHeader("=?base64?w6RnYQ?=")).toBeUndefined();
    expect(decodeHeader("=?base64?w6RnYQ==")).toBe("=?base64?w6RnYQ==");
  });
});
