export { defineHandler, definePrompt, defineResource } from "./capability/define.ts";
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
} from "./capability/define.ts";
export type {
  CallContext,
  ElicitAnswer,
  ElicitForm,
  ElicitUrl,
  SampleAnswer,
  SampleRequest,
} from "./capability/context.ts";
export type { ContentBlock, PromptMessage, ResourceContents, ToolResult } from "./capability/content.ts";
export { OwlError } from "./errors/owl-error.ts";
export type { ErrorKind } from "./errors/kinds.ts";
export type { Principal } from "./auth/principal.ts";
/** The schema library that we use ourselves, so that a handler file needs no project of its own. */
export { z } from "zod";
