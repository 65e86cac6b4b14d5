/** What a handler may put in front of a model. The shapes are MCP's own, so that nothing is lost on the way. */

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

export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

/** Whether a handler's return value is a whole MCP result and not a value to be rendered. */
function isToolResult(value: unknown): value is ToolResult {
  if (typeof value !== "object" || value === null || !("content" in value)) return false;
  const { content } = value;
  return Array.isArray(content) && content.every(isContentBlock);
}

/** The whole result that an output is, or that its blocks make. */
export function wholeResult(output: unknown): ToolResult | undefined {
  if (isToolResult(output)) return output;
  if (!Array.isArray(output) || output.length === 0) return undefined;
  const made = { content: output };
  return isToolResult(made) ? made : undefined;
}

export function isContentBlock(value: unknown): value is ContentBlock {
  if (!isObject(value)) return false;
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
  if (!isObject(value) || typeof value["uri"] !== "string") return false;
  return typeof value["text"] === "string" || typeof value["blob"] === "string";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const steady = new WeakSet<object>();

/** Says that nobody will ever change this object, so that whatever is made of it may be kept beside it. */
export function steadyContents(contents: ResourceContents): ResourceContents {
  steady.add(contents);
  return contents;
}

export function isSteady(contents: object): boolean {
  return steady.has(contents);
}

/** What OwlClaw writes into `_meta` of resources, and reads from it. `docs/skills.md` says what each holds. */
export const META = {
  /** In `resources/list`: which resources to list. */
  filter: "io.owlclaw/filter",
  /** In `resources/read`: which part is wanted, and what the client has. */
  wish: "io.owlclaw/read",
  /** On contents: digest, size, time, range. */
  content: "io.owlclaw/content",
  /** On a resource that is a skill: category, tags and what else its frontmatter says. */
  skill: "io.owlclaw/skill",
} as const;

export interface ContentFacts {
  readonly digest: string;
  readonly size: number;
  readonly lastModified: string;
  /** The bytes from `start` up to `end`, which is not part of them. */
  readonly range?: { readonly start: number; readonly end: number };
  readonly notModified?: true;
}

/** The bytes from `start` up to `end`, which is not part of them. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** One range of the `Range` header. Several, or what is no range, count as no header: the answer is then the whole. */
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
