import { isRecord } from "../platform/records.ts";

interface Annotated {
  readonly annotations?: {
    readonly audience?: readonly ("user" | "assistant")[];
    readonly priority?: number;
    readonly lastModified?: string;
  };
  readonly _meta?: Readonly<Record<string, unknown>>;
}

interface TextBlock extends Annotated {
  readonly type: "text";
  readonly text: string;
}

/** `data` is base64. */
interface ImageBlock extends Annotated {
  readonly type: "image";
  readonly data: string;
  readonly mimeType: string;
}

/** `data` is base64. */
interface AudioBlock extends Annotated {
  readonly type: "audio";
  readonly data: string;
  readonly mimeType: string;
}

interface ResourceLinkBlock extends Annotated {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

interface EmbeddedResourceBlock extends Annotated {
  readonly type: "resource";
  readonly resource: ResourceContents;
}

export type ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | EmbeddedResourceBlock;

export type ResourceContents =
  | {
      readonly uri: string;
      readonly mimeType?: string;
      readonly text: string;
      readonly _meta?: Readonly<Record<string, unknown>>;
    }
  | {
      readonly uri: string;
      readonly mimeType?: string;
      readonly blob: string;
      readonly _meta?: Readonly<Record<string, unknown>>;
    };

/** A whole MCP tool result, for handlers that want to say everything themselves. */
export interface ToolResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** `end` is exclusive. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** What `resources/read` returns for a file. */
export interface ContentFacts {
  readonly digest: string;
  readonly size: number;
  readonly lastModified: string;
  readonly range?: ByteRange;
  readonly notModified?: true;
}

/** Keys of `_meta` of resources. `docs/skills.md` describes their values. */
export const META = {
  /** In `resources/list`: which resources to list. */
  filter: "io.owlclaw/filter",
  /** In `resources/read`: the wanted range, and the digests that the client has. */
  read: "io.owlclaw/read",
  /** On contents: `ContentFacts`. */
  content: "io.owlclaw/content",
  /** On a resource that is a skill: its frontmatter. */
  skill: "io.owlclaw/skill",
} as const;

export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

function isToolResult(value: unknown): value is ToolResult {
  return isRecord(value) && Array.isArray(value["content"]) && value["content"].every(isContentBlock);
}

/** The MCP result that a handler returned whole or as its content blocks; undefined for any other value. */
export function wholeResult(output: unknown): ToolResult | undefined {
  if (isToolResult(output)) return output;
  if (!Array.isArray(output) || output.length === 0) return undefined;
  const made = { content: output };
  return isToolResult(made) ? made : undefined;
}

export function isContentBlock(value: unknown): value is ContentBlock {
  if (!isRecord(value)) return false;
  switch (value["type"]) {
    case "text":
      return typeof value["text"] === "string";
    case "image":
    case "audio":
      return typeof value["data"] === "string" && typeof value["mimeType"] === "string";
    case "resource_link":
      return typeof value["uri"] === "string" && typeof value["name"] === "string";
    case "resource":
      return isResourceContents(value["resource"]);
    default:
      return false;
  }
}

export function isResourceContents(value: unknown): value is ResourceContents {
  if (!isRecord(value) || typeof value["uri"] !== "string") return false;
  return typeof value["text"] === "string" || typeof value["blob"] === "string";
}

const immutableContents = new WeakSet<object>();

/** Marks an object that is never changed after this: what is computed from it may be cached. */
export function markImmutable(contents: ResourceContents): ResourceContents {
  immutableContents.add(contents);
  return contents;
}

export function isImmutable(contents: object): boolean {
  return immutableContents.has(contents);
}

/** The one range of a `Range` header. Undefined for several ranges or an invalid header: the answer is then the whole. */
export function byteRange(header: string | undefined, sizeBytes: number): ByteRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "") return last === "" ? undefined : lastBytes(Number(last), sizeBytes);
  const start = Number(first);
  const end = last === "" ? sizeBytes : Number(last) + 1;
  if (end <= start && last !== "") return undefined;
  return start >= sizeBytes ? "unsatisfiable" : { start, end: Math.min(end, sizeBytes) };
}

function lastBytes(count: number, sizeBytes: number): ByteRange | "unsatisfiable" {
  if (count === 0 || sizeBytes === 0) return "unsatisfiable";
  return { start: Math.max(0, sizeBytes - count), end: sizeBytes };
}
