import { OwlError } from "../errors/owl-error.ts";
import { findJsonFault } from "./json-fault.ts";
import { isImmutable } from "../capability/content.ts";

export type RequestId = string | number;

export interface JsonRpcRequest {
  readonly jsonrpc: "2.0";
  readonly id: RequestId;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface JsonRpcNotification {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface WireErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export type JsonRpcResponse =
  | { readonly jsonrpc: "2.0"; readonly id: RequestId; readonly result: Readonly<Record<string, unknown>> }
  | { readonly jsonrpc: "2.0"; readonly id: RequestId | null; readonly error: WireErrorBody };

export type JsonRpcMessage = JsonRpcRequest | JsonRpcNotification | JsonRpcResponse;

/** A received message: its kind, or why it is invalid, with the id to answer to when one can be read. */
export type Incoming =
  | { readonly kind: "request"; readonly message: JsonRpcRequest }
  | { readonly kind: "notification"; readonly message: JsonRpcNotification }
  | { readonly kind: "response"; readonly message: JsonRpcResponse }
  | { readonly kind: "invalid"; readonly id: RequestId | null; readonly error: OwlError };

export type Parsed =
  | { readonly batch: false; readonly item: Incoming }
  | { readonly batch: true; readonly items: readonly Incoming[] };

/** Deep enough for any real arguments; far below what would exhaust the stack of a recursive reader. */
const MAX_DEPTH = 200;
const MAX_BATCH = 1000;
/** Each value costs time in every step of a call: parsing, copying, checking, recording. */
const MAX_VALUES = 50_000;

/**
 * Matches every text with a number beyond the largest double, and few others. The lookbehind makes digits count only
 * from the first of a row, so that matching takes linear time.
 */
const MAY_OVERFLOW = /\d[eE]|(?<!\d)\d{309}/;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gs;

/**
 * Parses one line or body. Throws only errors of the whole input: a parse error, or a batch that is empty or too large.
 */
export function parseMessages(text: string): Parsed {
  const value = parseJson(text);
  if (!Array.isArray(value)) return { batch: false, item: readMessage(value) };
  if (value.length === 0) throw new OwlError("invalid_request", "an empty batch is not a request");
  if (value.length > MAX_BATCH) {
    throw new OwlError("invalid_request", `a batch holds at most ${MAX_BATCH} messages, this one has ${value.length}`);
  }
  return { batch: true, items: value.map(readMessage) };
}

export function parseJson(text: string): unknown {
  assertBounded(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { position, reason } = findJsonFault(text);
    throw atPosition(text, position, reason);
  }
  if (MAY_OVERFLOW.test(text)) assertFinite(text);
  return value;
}

/**
 * JavaScript reads `1e999` as Infinity, and writes that as `null`: rules, approvals, handlers and the ledger would each see
 * another value.
 */
function assertFinite(text: string): void {
  for (const { 0: token, index } of text.matchAll(STRING_OR_NUMBER)) {
    if (token.startsWith('"') || Number.isFinite(Number(token))) continue;
    throw atPosition(text, index, "the number is too large");
  }
}

export function serializeMessage(message: JsonRpcMessage | readonly JsonRpcMessage[]): string {
  return JSON.stringify(message);
}

export function readMessage(value: unknown): Incoming {
  if (!isObject(value)) return invalid(null, `a message is a JSON object, not ${describe(value)}`);
  const problem = problemOf(value);
  if (problem !== undefined) return invalid(isRequestId(value["id"]) ? value["id"] : null, problem);
  // Returns the object itself, so that nothing is copied.
  if (isRequest(value)) return { kind: "request", message: value };
  if (isNotification(value)) return { kind: "notification", message: value };
  if (isResponse(value)) return { kind: "response", message: value };
  const id = isRequestId(value["id"]) ? value["id"] : null;
  return invalid(id, 'a request needs "method"; a response needs an id and either "result" or "error"');
}

/** Why the object is not a message at all. */
function problemOf(value: Record<string, unknown>): string | undefined {
  const { jsonrpc, id, method, params } = value;
  if (jsonrpc !== "2.0") return `"jsonrpc" must be "2.0", not ${describe(jsonrpc)}`;
  if (!("method" in value)) return undefined;
  if ("id" in value && !isRequestId(id)) return `"id" must be a string or an integer, not ${describe(id)}`;
  if (typeof method !== "string" || method === "")
    return `"method" must be a non-empty string, not ${describe(method)}`;
  if ("params" in value && !isObject(params)) return `"params" must be an object, not ${describe(params)}`;
  return undefined;
}

function isRequest(value: object): value is JsonRpcRequest {
  return "method" in value && "id" in value;
}

function isNotification(value: object): value is JsonRpcNotification {
  return "method" in value;
}

function isResponse(value: Record<string, unknown>): value is Record<string, unknown> & JsonRpcResponse {
  // An error without an id is a response too: it answers something that the server could not have asked, and must not
  // be answered with another error.
  if (isObject(value["error"])) return !("result" in value);
  return isRequestId(value["id"]) && isObject(value["result"]) && !("error" in value);
}

export function isRequestId(value: unknown): value is RequestId {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function invalid(id: RequestId | null, message: string): Incoming {
  return { kind: "invalid", id, error: new OwlError("invalid_request", message) };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`;
}

/**
 * Brackets and commas inside strings are not counted; a text too short to be that deep is not scanned. Every value but
 * the first follows a comma, or is the first in a list or object.
 */
function assertBounded(text: string): void {
  if (text.length < MAX_DEPTH * 2) return;
  const values = countValues(text);
  if (values > MAX_VALUES) throw tooManyValues();
}

/** Throws when the text is nested too deeply. */
function countValues(text: string): number {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === 0x5c) index++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      if (!isClosing(text.charCodeAt(index + 1))) values++;
      if (++depth > MAX_DEPTH) throw atPosition(text, index, `nested deeper than ${MAX_DEPTH} levels`);
    } else if (isClosing(code)) depth--;
    else if (code === 0x2c) values++;
  }
  return values;
}

function isClosing(code: number): boolean {
  return code === 0x7d || code === 0x5d;
}

function tooManyValues(): OwlError {
  return new OwlError("too_large", `the message holds more than ${MAX_VALUES} values`, {
    facts: { limit: MAX_VALUES },
    hint: "Send fewer values in one message, for example as one text or in several calls.",
  });
}

function atPosition(text: string, position: number, reason: string): OwlError {
  const before = text.slice(0, position);
  const line = before.split("\n").length;
  const column = position - before.lastIndexOf("\n");
  return new OwlError(
    "parse_error",
    `invalid JSON at position ${position} (line ${line}, column ${column}): ${reason}`,
    {
      facts: { position, line, column },
    },
  );
}

/** The JSON of contents that never change, in bytes: escaping and encoding it costs more than all else in a read. */
const written = new WeakMap<object, Buffer>();

/** A body as JSON in parts, so that its long part is not made again. */
export type JsonParts = readonly (string | Buffer)[];

/** `JSON.stringify`, but contents that never change are serialized only once. */
export function toJsonParts(body: unknown): JsonParts {
  if (!isObject(body) || !isObject(body["result"])) return [JSON.stringify(body)];
  const { result, ...envelope } = body;
  const { contents, ...members } = result;
  const content = onlyContent(contents);
  if (content === undefined) return [JSON.stringify(body)];
  // The contents are written as the last member, so that their position is known without a search.
  const open = JSON.stringify({ ...envelope, result: members }).slice(0, -"}}".length);
  return [`${open}${open.endsWith("{") ? "" : ","}"contents":[`, bytesOf(content), "]}}"];
}

function onlyContent(contents: unknown): object | undefined {
  if (!Array.isArray(contents) || contents.length !== 1) return undefined;
  const content: unknown = contents[0];
  return isObject(content) && isImmutable(content) ? content : undefined;
}

function bytesOf(content: object): Buffer {
  let bytes = written.get(content);
  if (bytes === undefined) {
    bytes = Buffer.from(JSON.stringify(content));
    written.set(content, bytes);
  }
  return bytes;
}
