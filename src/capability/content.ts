/** What a handler may put in front of a model. The shapes are MCP's own, so that nothing is lost on the way. */

interface Annotated {
  readonly annotations?: {
    readonly audience?: readonly ("user" | "assistant")[];
    readonly priority?: number;
    readonly lastModified?: string;
  };
  readonly _meta?: Readonly<Record<string, unknown>>;
}

export interface TextBlock extends Annotated {
  readonly type: "text";
  readonly text: string;
}

/** `data` is base64. */
export interface ImageBlock extends Annotated {
  readonly type: "image";
  readonly data: string;
  readonly mimeType: string;
}

/** `data` is base64. */
export interface AudioBlock extends Annotated {
  readonly type: "audio";
  readonly data: string;
  readonly mimeType: string;
}

export interface ResourceLinkBlock extends Annotated {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

export interface EmbeddedResourceBlock extends Annotated {
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
export function isToolResult(value: unknown): value is ToolResult {
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
