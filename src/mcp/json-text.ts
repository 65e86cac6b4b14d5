import { isImmutable } from "../capability/content.ts";
import { isObject } from "./json-rpc.ts";

/** The JSON of contents that never change, in bytes: escaping and encoding them costs more than all else in a read. */
const written = new WeakMap<object, Buffer>();

/** A body as JSON in parts, so that the long part is nobody's to make again. */
export type JsonParts = readonly (string | Buffer)[];

/** `JSON.stringify`, with what is read again and again made only once. */
export function toJsonParts(body: unknown): JsonParts {
  if (!isObject(body) || !isObject(body["result"])) return [JSON.stringify(body)];
  const { result, ...envelope } = body;
  const { contents, ...members } = result;
  const content = onlyContent(contents);
  if (content === undefined) return [JSON.stringify(body)];
  // The contents are the last member that is written, so that their place is known without a search.
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
