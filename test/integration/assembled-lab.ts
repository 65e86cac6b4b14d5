import { afterEach } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import type { Call, Caller } from "../../src/call/call.ts";
import { Lifeline } from "../../src/call/lifeline.ts";
import type { Pipeline } from "../../src/call/pipeline.ts";
import { silentConversation } from "../../src/mcp/conversations/silent.ts";
import { assemble, type Assembly } from "../../src/server/assemble.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { newFolder } from "./governance-lab.ts";

let assembly: Assembly | undefined;
afterEach(() => assembly?.close());

export interface Assembled {
  readonly pipeline: Pipeline;
  readonly call: Call;
  readonly root: string;
  /** Reads the policy again. */
  refresh(): Promise<void>;
}

/** Ada at the pipeline of a server without doors. No sandbox is started: what the policy lets through ends before it needs one. */
export async function assembleGoverned(settings: Readonly<Record<string, unknown>>): Promise<Assembled> {
  const root = newFolder();
  const config = configSchema.parse({ sandbox: { root, pool: { size: 0 } }, ...settings });
  const opened = await assemble({ config, logger: SILENT_LOGGER, withPool: false });
  assembly = opened;
  const { pipeline, changes } = opened.mcp;
  const caller: Caller = {
    principal: { id: "ada", scopes: [], claims: {} },
    label: undefined,
    transport: "local",
    protocolVersion: "2025-11-25",
    sessionId: undefined,
  };
  const call = { caller, traceId: "t", life: new Lifeline(), conversation: silentConversation(changes) };
  return { pipeline, call, root, refresh: () => opened.refresh() };
}
