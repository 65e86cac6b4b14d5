import { createHash } from "node:crypto";
import type { ReadFile } from "./read-inside.ts";
import { type ResourceContents, markImmutable, type ContentFacts, META, byteRange } from "../capability/content.ts";
import type { ReadOptions } from "../capability/context.ts";
import { OwlError } from "../errors/owl-error.ts";
import { extname } from "node:path";

const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  [".md", "text/markdown"],
  [".markdown", "text/markdown"],
  [".txt", "text/plain"],
  [".json", "application/json"],
  [".yaml", "application/yaml"],
  [".yml", "application/yaml"],
  [".toml", "application/toml"],
  [".py", "text/x-python"],
  [".sh", "application/x-sh"],
  [".bash", "application/x-sh"],
  [".js", "text/javascript"],
  [".mjs", "text/javascript"],
  [".ts", "text/typescript"],
  [".sql", "application/sql"],
  [".html", "text/html"],
  [".css", "text/css"],
  [".csv", "text/csv"],
  [".xml", "application/xml"],
  [".svg", "image/svg+xml"],
  [".png", "image/png"],
  [".jpg", "image/jpeg"],
  [".jpeg", "image/jpeg"],
  [".gif", "image/gif"],
  [".webp", "image/webp"],
  [".pdf", "application/pdf"],
]);

/** The contents of one file. */
export interface SkillContent {
  readonly fingerprint: string;
  readonly modifiedMs: number;
  readonly bytes: Buffer;
  /** Undefined when the bytes are not UTF-8. */
  readonly text: string | undefined;
  /** `sha256:` and 64 hexadecimal digits, the format of the skills extension. */
  readonly digest: string;
}

/** Keeps a byte order mark: it is part of the file. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function toContent({ bytes, fingerprint, modifiedMs }: ReadFile): SkillContent {
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { fingerprint, modifiedMs, bytes, text: decode(bytes), digest };
}

export function decode(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    // Binary: it is sent as base64.
    return undefined;
  }
}

/** An LRU cache of contents, bounded in bytes. */
export class ContentCache {
  readonly #maxBytes: number;
  readonly #contents = new Map<string, SkillContent>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(path: string, fingerprint: string): SkillContent | undefined {
    const content = this.#contents.get(path);
    if (content?.fingerprint !== fingerprint) return undefined;
    this.#contents.delete(path);
    this.#contents.set(path, content);
    return content;
  }

  set(path: string, content: SkillContent): void {
    this.delete(path);
    if (costOf(content) > this.#maxBytes / 4) return;
    this.#contents.set(path, content);
    this.#bytes += costOf(content);
    for (const oldest of this.#contents.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(path: string): void {
    const content = this.#contents.get(path);
    if (content === undefined) return;
    this.#contents.delete(path);
    this.#bytes -= costOf(content);
  }
}

/** Bytes and text, and the same again for the JSON that is cached when they are sent. */
function costOf({ bytes, text = "" }: SkillContent): number {
  return 2 * bytes.length + 2 * text.length;
}

export interface RenderOptions {
  readonly uri: string;
  readonly mimeType: string;
  readonly options: ReadOptions | undefined;
}

/** A file as MCP contents: whole, a range of it, or "not modified". */
export function renderContent(content: SkillContent, { uri, mimeType, options }: RenderOptions): ResourceContents {
  if (options === undefined) return whole(content, { uri, mimeType });
  const { bytes, digest, text } = content;
  const facts = factsOf(content);
  const common = { uri, mimeType };
  if (matches(options.ifNoneMatch, digest))
    return { ...common, text: "", _meta: { [META.content]: { ...facts, notModified: true } } };
  const isCurrent = options.ifRange === undefined || options.ifRange.trim() === entityTag(digest);
  const range = isCurrent ? byteRange(options.range, bytes.length) : undefined;
  if (range === undefined) return { ...common, ...asBody(bytes, text), _meta: { [META.content]: facts } };
  if (range === "unsatisfiable") throw unsatisfiable(options.range, bytes.length);
  const part = bytes.subarray(range.start, range.end);
  return { ...common, ...asBody(part, decode(part)), _meta: { [META.content]: { ...facts, range } } };
}

const rendered = new WeakMap<SkillContent, ResourceContents>();

/** Most reads request the same few files by the same URI: the rendered object is cached. */
function whole(content: SkillContent, common: Pick<RenderOptions, "uri" | "mimeType">): ResourceContents {
  const known = rendered.get(content);
  if (known !== undefined && known.uri === common.uri && known.mimeType === common.mimeType) return known;
  const { bytes, text } = content;
  const contents = { ...common, ...asBody(bytes, text), _meta: { [META.content]: factsOf(content) } };
  rendered.set(content, markImmutable(contents));
  return contents;
}

function factsOf({ bytes, digest, modifiedMs }: SkillContent): ContentFacts {
  return { digest, size: bytes.length, lastModified: new Date(modifiedMs).toISOString() };
}

/** The digest as HTTP's strong validator. */
function entityTag(digest: string): string {
  return `"${digest}"`;
}

/** `If-None-Match`: a list of tags, or a star; a digest without quotes is accepted too. */
function matches(header: string | undefined, digest: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((each) => {
    const tag = each.trim().replace(/^W\//, "");
    return tag === "*" || tag === entityTag(digest) || tag === digest;
  });
}

function asBody(bytes: Buffer, text: string | undefined) {
  return text === undefined ? { blob: bytes.toString("base64") } : { text };
}

function unsatisfiable(range: string | undefined, size: number): OwlError {
  return new OwlError("invalid_params", `the file has ${size} bytes, and none of them are in the range`, {
    facts: { reason: "range", range, size },
    hint: "ask for a range inside the file, or for the whole of it",
  });
}

export function mimeTypeOf(name: string): string {
  return BY_EXTENSION.get(extname(name).toLowerCase()) ?? "application/octet-stream";
}
