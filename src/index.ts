export { defineHandler, definePrompt, defineResource } from "./capabilities/define.ts";
export type {
  Completer,
  Definition,
  Effect,
  HandlerDefinition,
  HandlerOutput,
  PermissionScope,
  PromptDefinition,
  ResourceDefinition,
  TaskOptions,
} from "./capabilities/define.ts";
export type { CallContext, ElicitAnswer, ElicitForm, ElicitUrl, SampleAnswer, SampleRequest } from "./capabilities/context.ts";
export type { ContentBlock, PromptMessage, ResourceContents, ToolResult } from "./capabilities/content.ts";
export type { Principal } from "./auth/principal.ts";
