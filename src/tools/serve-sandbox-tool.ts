import type { GuestOutput } from "../../contract/guest.ts";
import type { ContentBlock, ToolResult } from "../capability/content.ts";
import type { CallContext } from "../capability/context.ts";
import type { HandlerDefinition } from "../capability/define.ts";
import { type OwlError, toOwlError } from "../errors/owl-error.ts";
import { activeSpan, traced } from "../telemetry/tracing/active-span.ts";
import { sessionDigest } from "../telemetry/redact.ts";
import type { SandboxUse } from "../sandbox/sandboxes.ts";
import type { SandboxRequest } from "../sandbox/sandbox-request.ts";
import type { ObservedCall } from "../sandbox/sandbox-observer.ts";
import { withoutControls } from "../telemetry/plain-fields.ts";
import { type JsonObject, fitValue } from "./fit-value.ts";
import { withNetworkHint } from "./network-note.ts";
import { progressOf } from "./output-progress.ts";
import type { Outcome, SandboxCall, SandboxTool } from "./sandbox-tool.ts";
import { sessionIdOf } from "./session-id.ts";
import type { ToolServices } from "./tool-services.ts";

const MAX_LINE_CHARS = 300;
const MAX_HINT_CHARS = 1000;

/** Puts a tool on the wire under a name. */
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
  /** What it is wanted for, as people who look on are told. */
  readonly use: Pick<ObservedCall, "tool" | "input">;
}

/** Finds or makes the sandbox, keeps it busy while `use` runs, and lets it go. */
export async function inSandbox<T>(
  { sandboxes, limits, sandboxObserver }: ToolServices,
  { context, sessionId, request, use: wanted }: SandboxCallOptions,
  use: (call: SandboxCall, sandboxUse: SandboxUse) => Promise<T>,
): Promise<T> {
  const open = (): Promise<SandboxUse> => sandboxes.open(context, sessionId, request);
  const sandboxUse = activeSpan() === undefined ? await open() : await tracedLease(open);
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

function tracedLease(open: () => Promise<SandboxUse>): Promise<SandboxUse> {
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

/** What every result says about its sandbox. */
export function sessionFacts({ sandbox, wasCreated, note }: SandboxUse): JsonObject {
  const isRestarted = sandbox.takeRestart();
  return {
    session_id: sandbox.facts.id,
    session_created: wasCreated,
    ...(isRestarted && { sandbox_restarted: true }),
    ...(note !== undefined && { note }),
  };
}

/** A request that the sandbox refused is an outcome too: the caller learns which sandbox it was. */
async function attempt(tool: SandboxTool, call: SandboxCall, input: unknown): Promise<Outcome> {
  try {
    return await tool.run(call, input);
  } catch (thrown) {
    const error = toOwlError(thrown);
    if (error.kind !== "tool_failure") throw error;
    return failureOutcome(error);
  }
}

export function failureOutcome({ message, hint, facts }: OwlError): Outcome {
  return { summary: "", value: { ...facts }, failure: { reason: message, hint } };
}

interface RenderOptions {
  readonly name: string;
  readonly sandboxUse: SandboxUse;
  readonly maxChars: number;
}

/** One line for a quick look, then everything as JSON; on failure a line with the next step between them. */
function renderOutcome({ name, sandboxUse, maxChars }: RenderOptions, outcome: Outcome): ToolResult {
  const { summary, blocks = [], failure } = outcome;
  const whole = { ...outcome.value, ...sessionFacts(sandboxUse), ...restartOf(outcome.value) };
  const head =
    failure === undefined
      ? `${name} ok: ${oneLine(summary)}`
      : `${name} failed: ${oneLine(failure.reason)}\nhint: ${oneLine(failure.hint, MAX_HINT_CHARS)}`;
  const { value, json } = fitValue(whole, Math.max(0, maxChars - head.length - 1));
  const text: ContentBlock = { type: "text", text: `${head}\n${json}` };
  const content = [text, ...blocks];
  return failure === undefined ? { content, structuredContent: value } : { content, isError: true };
}

function restartOf(value: JsonObject): JsonObject {
  return value["sandbox_restarted"] === true ? { sandbox_restarted: true } : {};
}

/** What a page or a guest says must not look like a line of ours. */
function oneLine(text: string, maxChars = MAX_LINE_CHARS): string {
  return withoutControls(text.replaceAll(/\s+/g, " ")).slice(0, maxChars);
}
