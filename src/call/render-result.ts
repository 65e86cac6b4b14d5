import {
  type ContentBlock,
  type ToolResult,
  wholeResult,
  isContentBlock,
  isResourceContents,
  type PromptMessage,
  type ResourceContents,
} from "../capability/content.ts";
import type { HandlerOutput, PromptDefinition, ResourceDefinition } from "../capability/define.ts";
import type { Tool } from "../capability/registry.ts";
import { OwlError } from "../errors/owl-error.ts";
import { describeIssues } from "../capability/define-tool.ts";

/** Makes MCP content from the value that a capability returned: text for the model first, and the value itself. */
export async function renderResult(tool: Tool, output: HandlerOutput, maxChars: number): Promise<ToolResult> {
  const whole = wholeResult(output);
  if (whole !== undefined) return capped(await withCheckedStructure(tool, whole), maxChars);
  const value = tool.output === undefined ? output : await checkedOutput(tool, output);
  const text = typeof value === "string" ? value : toJson(tool, value);
  const structured = tool.output !== undefined || (typeof value === "object" && value !== null);
  return capped(
    { content: text === undefined ? [] : [{ type: "text", text }], ...(structured && { structuredContent: value }) },
    maxChars,
  );
}

/**
 * A failure that the model should read and repair. Never with `structuredContent`: clients would validate it and hide
 * the message.
 */
export function renderFailure(toolName: string, error: OwlError, data: Readonly<Record<string, unknown>>): ToolResult {
  return {
    content: [{ type: "text", text: `${toolName} failed: ${error.message}\nhint: ${error.hint}` }],
    isError: true,
    _meta: { "owlclaw/error": data },
  };
}

/** Keeps the head and the tail, and says how much is missing between them. */
export function capText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const notice = `\n[... ${text.length - maxChars} of ${text.length} characters cut: ask for less, or raise tools.maxResultChars ...]\n`;
  const half = Math.floor(maxChars / 2);
  return `${wellFormed(text.slice(0, half))}${notice}${wellFormed(text.slice(text.length - half))}`;
}

async function withCheckedStructure(tool: Tool, result: ToolResult): Promise<ToolResult> {
  if (tool.output === undefined || result.isError === true) return result;
  return { ...result, structuredContent: await checkedOutput(tool, result.structuredContent) };
}

async function checkedOutput(tool: Tool, value: unknown): Promise<unknown> {
  const verdict = await tool.output?.check(value);
  if (verdict === undefined || verdict.ok) return verdict === undefined ? value : verdict.value;
  throw new OwlError(
    "execution_error",
    `the tool "${tool.name}" returned what its own output schema forbids: ${describeIssues(verdict.issues)}`,
  );
}

function toJson(tool: Tool, value: unknown): string | undefined {
  try {
    return value === undefined || value === null ? undefined : JSON.stringify(value);
  } catch (cause) {
    throw new OwlError("execution_error", `the tool "${tool.name}" returned a value that JSON cannot express`, {
      cause,
    });
  }
}

function capped(result: ToolResult, maxChars: number): ToolResult {
  if (!result.content.some((block) => block.type === "text" && block.text.length > maxChars)) return result;
  const cap = (block: ContentBlock): ContentBlock =>
    block.type === "text" ? { ...block, text: capText(block.text, maxChars) } : block;
  return { ...result, content: result.content.map(cap) };
}

/** Removes half of a surrogate pair, which would not be valid UTF-8 on the wire. */
function wellFormed(text: string): string {
  return text.replaceAll(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "");
}

export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}

/**
 * The value that a resource returned, as MCP contents. Its shape is checked: plain JavaScript does not enforce types.
 */
export function toContents(
  output: unknown,
  uri: string,
  { name, mimeType }: ResourceDefinition,
): readonly ResourceContents[] {
  const common = { uri, ...(mimeType !== undefined && { mimeType }) };
  if (typeof output === "string") return [{ ...common, text: output }];
  if (output instanceof Uint8Array) return [{ ...common, blob: Buffer.from(output).toString("base64") }];
  if (isResourceContents(output)) return [output];
  if (Array.isArray(output) && output.every(isResourceContents)) return output;
  throw new OwlError("execution_error", `the resource "${name}" returned what is no content`);
}

export function toPromptResult(output: unknown, { name, description }: PromptDefinition): PromptResult {
  const described = description === undefined ? {} : { description };
  if (typeof output === "string") {
    return { ...described, messages: [{ role: "user", content: { type: "text", text: output } }] };
  }
  if (isMessages(output)) return { ...described, messages: output };
  if (isPromptResult(output)) return { ...described, ...output };
  throw new OwlError("execution_error", `the prompt "${name}" returned what is no message`);
}

function isPromptResult(value: unknown): value is PromptResult {
  if (typeof value !== "object" || value === null || !("messages" in value)) return false;
  return isMessages(value.messages) && (!("description" in value) || typeof value.description === "string");
}

function isMessages(value: unknown): value is readonly PromptMessage[] {
  return Array.isArray(value) && value.every(isMessage);
}

function isMessage(value: unknown): value is PromptMessage {
  if (typeof value !== "object" || value === null || !("role" in value) || !("content" in value)) return false;
  return (value.role === "user" || value.role === "assistant") && isContentBlock(value.content);
}
