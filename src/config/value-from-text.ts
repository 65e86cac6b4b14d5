import type { ConfigKey } from "./keys.ts";

export type TextVerdict =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

/** Environment variables and flags are text. The type of the key determines how it is parsed. */
export function valueFromText(key: ConfigKey, text: string): TextVerdict {
  switch (key.type) {
    case "string":
    case "choice":
      return { ok: true, value: text };
    case "boolean":
      return toBoolean(text);
    case "integer":
    case "number":
      return toNumber(text);
    case "list":
      return toList(text);
    case "map":
      return toMap(text);
  }
}

function toBoolean(text: string): TextVerdict {
  switch (text.trim().toLowerCase()) {
    case "true":
    case "1":
      return { ok: true, value: true };
    case "false":
    case "0":
      return { ok: true, value: false };
    default:
      return { ok: false, reason: "is neither true nor false" };
  }
}

function toNumber(text: string): TextVerdict {
  const trimmed = text.trim();
  if (!/^-?\d+(\.\d+)?$/.test(trimmed)) return { ok: false, reason: "is not a number" };
  return { ok: true, value: Number(trimmed) };
}

/** `NAME=value` pairs separated by commas, or a JSON object when values contain commas. */
function toMap(text: string): TextVerdict {
  if (!text.trimStart().startsWith("{")) {
    const pairs = text
      .split(",")
      .filter((pair) => pair.trim() !== "")
      .map((pair) => ({ pair, at: pair.indexOf("=") }));
    if (pairs.some(({ at }) => at < 1)) return { ok: false, reason: "is not a list of NAME=value pairs" };
    return {
      ok: true,
      value: Object.fromEntries(pairs.map(({ pair, at }) => [pair.slice(0, at).trim(), pair.slice(at + 1)])),
    };
  }
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false, reason: "starts like a JSON object but is not valid JSON" };
  }
}

function toList(text: string): TextVerdict {
  if (!text.trimStart().startsWith("[")) {
    const items = text.split(",").map((item) => item.trim());
    return { ok: true, value: items.filter((item) => item !== "") };
  }
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false, reason: "starts like a JSON list but is not valid JSON" };
  }
}
