import { PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import { OwlError } from "../errors/owl-error.ts";
import { isObject, type JsonRpcNotification, type JsonRpcRequest } from "./json-rpc.ts";
import { assertRevision, type MirrorHeaders, plainEnvelope } from "./request-envelope.ts";
import { NEWEST_MODERN_VERSION } from "./versions.ts";

/**
 * Throws when envelope and headers name no supported revision without handshake, or disagree. A header that differs
 * from the body could get a message past the rules of a proxy.
 */
export function assertMirrored(message: JsonRpcRequest | JsonRpcNotification, headers: MirrorHeaders): void {
  if ("id" in message && isMirrored(message, headers)) return;
  assertRevision(message, headers);
  if ("id" in message) assertNamed(message, headers);
}

/** An exact comparison, for envelopes that need no other check. */
function isMirrored(message: JsonRpcRequest, { version, method, name }: MirrorHeaders): boolean {
  const { params } = message;
  const meta = params?.["_meta"];
  const field = NAME_FIELDS.get(message.method);
  return (
    version === NEWEST_MODERN_VERSION &&
    method === message.method &&
    (field === undefined || (name === params?.[field] && name?.startsWith("=?") !== true)) &&
    isObject(meta) &&
    meta[PROTOCOL_VERSION_META_KEY] === version &&
    plainEnvelope(message) !== undefined
  );
}

/** The parameter that the header `Mcp-Name` repeats, by method. */
const NAME_FIELDS = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

/** Requests must have the headers; the SDK compares those that are present. */
function assertNamed(message: JsonRpcRequest, headers: MirrorHeaders): void {
  const { version, method, name } = headers;
  if (version === undefined)
    throw missing(
      `the body envelope names protocol version ${revisionIn(message)} but the required MCP-Protocol-Version header is absent`,
    );
  if (method === undefined)
    throw missing(`the body names method ${message.method} but the required Mcp-Method header is absent`);
  const field = NAME_FIELDS.get(message.method);
  if (field !== undefined) assertName(name, field, message.params?.[field]);
}

function assertName(header: string | undefined, field: string, named: unknown): void {
  const inBody = typeof named === "string" ? `the body carries params.${field}="${named}"` : undefined;
  if (header === undefined) {
    if (inBody !== undefined) throw missing(`${inBody} but the required Mcp-Name header is absent`);
    return;
  }
  const decoded = decodeHeader(header);
  if (decoded === undefined) throw mismatch(header, "the Mcp-Name header carries an invalid Base64 sentinel value");
  if (inBody !== undefined && decoded !== named)
    throw mismatch(header, `${inBody} but the Mcp-Name header names "${decoded}"`);
}

function revisionIn({ params }: JsonRpcRequest): string {
  const meta = params?.["_meta"];
  return isObject(meta) ? String(meta[PROTOCOL_VERSION_META_KEY]) : "";
}

function missing(body: string): OwlError {
  return mismatch("(missing)", body);
}

function mismatch(header: string, body: string): OwlError {
  return new OwlError("header_mismatch", `Bad Request: the request headers and body disagree: ${body}`, {
    facts: { mismatch: { header, body } },
  });
}

const ENCODED = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/;
const LOOKS_ENCODED = /^=\?base64\?.*\?=$/s;

/** The value of a header that may be in base64; `undefined` when it is marked as base64 but is not valid. */
export function decodeHeader(header: string): string | undefined {
  if (!LOOKS_ENCODED.test(header)) return header;
  const base64 = ENCODED.exec(header)?.[1];
  return base64 === undefined ? undefined : Buffer.from(base64, "base64").toString("utf8");
}
