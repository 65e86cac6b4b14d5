import { compileTool } from "../../../src/capability/define-tool.ts";
import type { HandlerDefinition, HandlerOutput } from "../../../src/capability/define.ts";
import type { Tool } from "../../../src/capability/registry.ts";
import type { Call, Conversation } from "../../../src/call/call.ts";
import { Lifeline } from "../../../src/call/lifeline.ts";

export interface Report {
  readonly done: number;
  readonly message: string | undefined;
}

export interface TestCall extends Call {
  readonly reports: Report[];
}

/** A call by nobody in particular, whose conversation remembers what was said. */
export function makeCall({ wantsProgress = false }: { readonly wantsProgress?: boolean } = {}): TestCall {
  const reports: Report[] = [];
  const cannot = (): Promise<never> => Promise.reject(new Error("nobody can be asked here"));
  const conversation: Conversation = {
    wantsProgress,
    progress: (done, options) => void reports.push({ done, message: options?.message }),
    log: () => undefined,
    elicit: cannot,
    sample: cannot,
    roots: cannot,
    startTask: () => Promise.resolve(),
    listChanged: () => undefined,
    closeStream: () => undefined,
  };
  return {
    reports,
    conversation,
    traceId: "0".repeat(32),
    life: new Lifeline(),
    caller: {
      principal: { id: "somebody", scopes: [], claims: {} },
      label: undefined,
      transport: "local",
      protocolVersion: "2025-11-25",
      sessionId: undefined,
    },
  };
}

export function makeTool(definition: Partial<HandlerDefinition>): Tool {
  return compileTool({ name: "tool", description: "A tool", run: () => "ran", ...definition });
}

export function returning(output: HandlerOutput, definition: Partial<HandlerDefinition> = {}): Tool {
  return makeTool({ ...definition, run: () => output });
}
