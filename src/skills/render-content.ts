import { byteRange } from "../capability/byte-range.ts";
import type { ResourceContents } from "../capability/content.ts";
import type { ReadWish } from "../capability/context.ts";
import { type ContentFacts, META } from "../capability/meta-keys.ts";
import { steadyContents } from "../capability/steady-contents.ts";
import { OwlError } from "../errors/owl-error.ts";
import { decode, type SkillContent } from "./skill-contents.ts";

export interface RenderOptions {
  readonly uri: string;
  readonly mimeType: string;
  readonly wish: ReadWish | undefined;
}

/** A file as MCP contents: whole, a part of it, or the word that it has not changed. */
export function renderContent(content: SkillContent, { uri, mimeType, wish }: RenderOptions): ResourceContents {
  if (wish === undefined) return whole(content, { uri, mimeType });
  const { bytes, digest, text } = content;
  const facts = factsOf(content);
  const common = { uri, mimeType };
  if (matches(wish.ifNoneMatch, digest))
    return { ...common, text: "", _meta: { [META.content]: { ...facts, notModified: true } } };
  const isStillMeant = wish.ifRange === undefined || wish.ifRange.trim() === entityTag(digest);
  const range = isStillMeant ? byteRange(wish.range, bytes.length) : undefined;
  if (range === undefined) return { ...common, ...asBody(bytes, text), _meta: { [META.content]: facts } };
  if (range === "unsatisfiable") throw unsatisfiable(wish.range, bytes.length);
  const part = bytes.subarray(range.start, range.end);
  return { ...common, ...asBody(part, decode(part)), _meta: { [META.content]: { ...facts, range } } };
}

const rendered = new WeakMap<SkillContent, ResourceContents>();

/** Most reads are of the same few files under the same name: one object serves them all. */
function whole(content: SkillContent, common: Pick<RenderOptions, "uri" | "mimeType">): ResourceContents {
  const known = rendered.get(content);
  if (known !== undefined && known.uri === common.uri && known.mimeType === common.mimeType) return known;
  const { bytes, text } = content;
  const contents = { ...common, ...asBody(bytes, text), _meta: { [META.content]: factsOf(content) } };
  rendered.set(content, steadyContents(contents));
  return contents;
}

function factsOf({ bytes, digest, modifiedMs }: SkillContent): ContentFacts {
  return { digest, size: bytes.length, lastModified: new Date(modifiedMs).toISOString() };
}

/** The digest as HTTP's strong validator. */
function entityTag(digest: string): string {
  return `"${digest}"`;
}

/** `If-None-Match`: a list of tags, or a star; a bare digest will do too. */
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
