import {
  isContentBlock,
  isResourceContents,
  type PromptMessage,
  type ResourceContents,
} from "../capability/content.ts";
import type { PromptDefinition, ResourceDefinition } from "../capability/define.ts";
import { OwlError } from "../errors/owl-error.ts";

export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}

/** What a resource returned, as MCP contents. Types promise more than plain JavaScript keeps: the shape is checked. */
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
