import { isRecord } from "../platform/records.ts";
import type { ContentBlock, ToolResult } from "../capability/content.ts";
import type { CallContext } from "../capability/context.ts";
import type { HandlerDefinition } from "../capability/define.ts";
import { toOwlError } from "../errors/owl-error.ts";
import { activeSpan, traced } from "../telemetry/tracing/active-span.ts";
import { sessionDigest } from "../telemetry/redact.ts";
import type { GuestOutput, OnOutput } from "../../contract/guest.ts";
import type { SandboxUse } from "../sandbox/sandboxes.ts";
import type { SandboxRequest } from "../sandbox/sandbox-request.ts";
import type { ObservedCall } from "../sandbox/sandbox-observer.ts";
import { withoutControls } from "../telemetry/plain-fields.ts";
import { type JsonObject, fitValue } from "./fit-value.ts";
import { withNetworkHint } from "./network-note.ts";
import type { Outcome, SandboxCall, SandboxTool, ToolServices } from "./sandbox-tool.ts";

const MAX_LINE_CHARS = 300;
const MAX_HINT_CHARS = 1000;
const PROGRESS_INTERVAL_MS = 200;
/** Of the output between two notifications the end is sent; the result has all of it. */
const MAX_PROGRESS_CHARS = 2000;

/** The tool under one of its names, as the registry takes it. */
export function serveSandboxTool(name: string, tool: SandboxTool, services: ToolServices): HandlerDefinition {
  const { title, description, effect, scope, input, output } = tool;
  return {
    name,
    title,
    description,
    effect,
    scope,
    input,
    output,
    run: (value, context) =>
      inSandbox(
        services,
        { context, sessionId: sessionIdOf(value), use: { tool: name, input: value } },
        async (call, sandboxUse) => {
          const outcome = await attempt(tool, call, value);
          call.recorder?.outcome(outcome);
          return renderOutcome(
            { name, sandboxUse, maxChars: services.limits.maxResultChars },
            withNetworkHint(outcome, call.sandbox.plan.network.allow),
          );
        },
      ),
  };
}

interface SandboxCallOptions {
  readonly context: CallContext;
  readonly sessionId: string | undefined;
  readonly request?: SandboxRequest;
  /** Shown to operators who watch the sandbox. */
  readonly use: Pick<ObservedCall, "tool" | "input">;
}

/** Finds or creates the sandbox, keeps it busy while `use` runs, and releases it. */
export async function inSandbox<T>(
  { sandboxes, limits, sandboxObserver }: ToolServices,
  { context, sessionId, request, use: wanted }: SandboxCallOptions,
  use: (call: SandboxCall, sandboxUse: SandboxUse) => Promise<T>,
): Promise<T> {
  const open = (): Promise<SandboxUse> => sandboxes.open(context, sessionId, request);
  const sandboxUse = activeSpan() === undefined ? await open() : await tracedOpen(open);
  context.meter?.(sandboxUse.sandbox);
  const { instanceId, language } = sandboxUse.sandbox.plan;
  const { traceId, principal } = context;
  const recorder = sandboxObserver?.callStarted({ ...wanted, instanceId, language, traceId, principal: principal.id });
  const progress = progressOf(context);
  const onOutput = (output: GuestOutput): void => {
    recorder?.output(output);
    progress(output);
  };
  try {
    return await use({ sandbox: sandboxUse.sandbox, limits, signal: context.signal, onOutput, recorder }, sandboxUse);
  } finally {
    recorder?.ended();
    sandboxUse.release();
  }
}

function tracedOpen(open: () => Promise<SandboxUse>): Promise<SandboxUse> {
  return traced({ name: "sandbox open" }, async (span) => {
    const sandboxUse = await open();
    const { facts, plan, runtime } = sandboxUse.sandbox;
    span?.set("owlclaw.sandbox.session", sessionDigest(facts.id));
    span?.set("owlclaw.sandbox.created", sandboxUse.wasCreated);
    span?.set("owlclaw.sandbox.template", plan.template);
    span?.set("owlclaw.sandbox.runtime", runtime);
    return sandboxUse;
  });
}

/** Members of every result that name its sandbox. */
export function sessionFacts({ sandbox, wasCreated, note }: SandboxUse): JsonObject {
  const isRestarted = sandbox.takeRestart();
  return {
    session_id: sandbox.facts.id,
    session_created: wasCreated,
    ...(isRestarted && { sandbox_restarted: true }),
    ...(note !== undefined && { note }),
  };
}

/** A request that the sandbox refused becomes an outcome, so that the result names the sandbox. */
async function attempt(tool: SandboxTool, call: SandboxCall, input: unknown): Promise<Outcome> {
  try {
    return await tool.run(call, input);
  } catch (thrown) {
    const error = toOwlError(thrown);
    if (error.kind !== "tool_failure") throw error;
    return { summary: "", value: { ...error.facts }, failure: { reason: error.message, hint: error.hint } };
  }
}

/** A first line with the key facts, then all of it as JSON; on failure a line with the next step between them. */
function renderOutcome(
  { name, sandboxUse, maxChars }: { readonly name: string; readonly sandboxUse: SandboxUse; readonly maxChars: number },
  outcome: Outcome,
): ToolResult {
  const { summary, blocks = [], failure } = outcome;
  const whole = { ...outcome.value, ...sessionFacts(sandboxUse) };
  const head =
    failure === undefined
      ? `${name} ok: ${oneLine(summary)}`
      : `${name} failed: ${oneLine(failure.reason)}\nhint: ${oneLine(failure.hint, MAX_HINT_CHARS)}`;
  const { value, json } = fitValue(whole, Math.max(0, maxChars - head.length - 1));
  const text: ContentBlock = { type: "text", text: `${head}\n${json}` };
  const content = [text, ...blocks];
  return failure === undefined ? { content, structuredContent: value } : { content, isError: true };
}

/** Text of a page or of a guest must not look like a line of the server. */
function oneLine(text: string, maxChars = MAX_LINE_CHARS): string {
  return withoutControls(text.replaceAll(/\s+/g, " ")).slice(0, maxChars);
}

/** Sends the output of a call as progress notifications to clients that asked for progress. */
function progressOf(context: CallContext): OnOutput {
  const startedAtMs = performance.now();
  let pending = "";
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    timer = undefined;
    if (context.signal.aborted) return;
    const seconds = (performance.now() - startedAtMs) / 1000;
    context.progress(seconds, { message: pending });
    pending = "";
  };
  return ({ text }) => {
    pending = (pending + text).slice(-MAX_PROGRESS_CHARS);
    timer ??= setTimeout(send, PROGRESS_INTERVAL_MS).unref();
  };
}

/** The `session_id` of arguments that their schema has checked already. */
export function sessionIdOf(input: unknown): string | undefined {
  return isRecord(input) && typeof input["session_id"] === "string" ? input["session_id"] : undefined;
}
