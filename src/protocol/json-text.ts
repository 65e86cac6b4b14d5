import { isObject } from "./json-rpc.ts";

/** Shorter texts are written faster than they are looked up. */
const LONG_CHARS = 2048;
const MAX_KEPT_BYTES = 8 * 1024 * 1024;

/** Long texts in quotes, as JSON has them, in bytes. Escaping and encoding them costs more than all else in a read. */
const quoted = new Map<string, Buffer>();
let keptBytes = 0;

/** A body as JSON in parts, so that the long part is nobody's to copy. */
export type JsonParts = readonly (string | Buffer)[];

/** `JSON.stringify`, with the texts of resources that are read again and again escaped only once. */
export function toJsonParts(body: unknown): JsonParts {
  const content = onlyContent(body);
  if (content === undefined) return [JSON.stringify(body)];
  const { body: rest, text } = content;
  // The text is the last member that is written, so that its place is known without a search.
  const open = JSON.stringify(rest).slice(0, -"}]}}".length);
  return [`${open}${open.endsWith("{") ? "" : ","}"text":`, quote(text), "}]}}"];
}

/** The one long text of an answer to `resources/read`, and the answer without it. */
function onlyContent(body: unknown): { readonly body: unknown; readonly text: string } | undefined {
  if (!isObject(body) || !isObject(body["result"])) return undefined;
  const { result, ...envelope } = body;
  const { contents, ...members } = result;
  if (!Array.isArray(contents) || contents.length !== 1) return undefined;
  const content: unknown = contents[0];
  if (!isObject(content) || typeof content["text"] !== "string" || content["text"].length < LONG_CHARS)
    return undefined;
  const { text, ...facts } = content;
  return { text, body: { ...envelope, result: { ...members, contents: [facts] } } };
}

function quote(text: string): Buffer {
  const known = quoted.get(text);
  if (known !== undefined) return known;
  const json = Buffer.from(JSON.stringify(text));
  quoted.set(text, json);
  keptBytes += json.length;
  for (const [oldest, kept] of quoted) {
    if (keptBytes <= MAX_KEPT_BYTES) break;
    quoted.delete(oldest);
    keptBytes -= kept.length;
  }
  return json;
}
