/** What a message must be answered with, read off the JSON-RPC 2.0 text and not off our code. */
export type Due =
  | { readonly kind: "silence" }
  | { readonly kind: "refusal"; readonly ids: readonly unknown[]; readonly codes: readonly number[] }
  | { readonly kind: "answer"; readonly id: string | number }
  | { readonly kind: "batch"; readonly items: readonly Due[] };

const PARSE_ERROR = [-32700];
const INVALID_REQUEST = [-32600];
const MAX_DEPTH = 200;

export function dueFor(bytes: Buffer): Due {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // Not JSON, or not UTF-8: one refusal without an id.
    return refusal(null, PARSE_ERROR);
  }
  if (depthOf(value) > MAX_DEPTH) return refusal(null, PARSE_ERROR);
  // JSON has no limit for numbers. One that no double can hold is refused by us, as the text allows.
  if (holdsInfinity(value)) return refusal(null, PARSE_ERROR);
  if (!Array.isArray(value)) return dueForMessage(value);
  return value.length === 0 ? refusal(null, INVALID_REQUEST) : { kind: "batch", items: value.map(dueForMessage) };
}

function dueForMessage(message: unknown): Due {
  if (!isObject(message)) return refusal(null, INVALID_REQUEST);
  const id = isId(message["id"]) ? message["id"] : null;
  if (message["jsonrpc"] !== "2.0") return refusal(id, INVALID_REQUEST);
  if (!Object.hasOwn(message, "method"))
    return isResponse(message) ? { kind: "silence" } : refusal(id, INVALID_REQUEST);
  if (Object.hasOwn(message, "id") && id === null) return refusal(null, INVALID_REQUEST);
  if (typeof message["method"] !== "string" || message["method"] === "") return refusal(id, INVALID_REQUEST);
  if (Object.hasOwn(message, "params") && !isObject(message["params"])) return refusal(id, [-32600, -32602]);
  return id === null ? { kind: "silence" } : { kind: "answer", id };
}

function refusal(id: unknown, codes: readonly number[]): Due {
  // An id that can be read may be given back or not: the text asks for it only where the request is one.
  return { kind: "refusal", ids: id === null ? [null] : [id, null], codes };
}

function isResponse(message: Record<string, unknown>): boolean {
  if (isObject(message["error"])) return !Object.hasOwn(message, "result");
  return isId(message["id"]) && isObject(message["result"]) && !Object.hasOwn(message, "error");
}

function isId(value: unknown): value is string | number {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function holdsInfinity(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(holdsInfinity);
  return typeof value === "number" && !Number.isFinite(value);
}

function depthOf(value: unknown): number {
  let depth = 0;
  let level: unknown[] = [value];
  while (level.some((item) => typeof item === "object" && item !== null)) {
    depth += 1;
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return depth;
}
