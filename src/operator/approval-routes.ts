import * as z from "zod";
import { OwlError, isOwlError } from "../errors/owl-error.ts";
import type { Approval } from "../governance/approval/approvals.ts";
import type { SandboxCaller } from "../sandbox/sandbox-request.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { ApiRoute } from "./api.ts";
import type { ApprovalNow } from "./contract.ts";
import { bodyAs } from "./request-body.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { MissingText } from "./contract-files.ts";

export interface ApprovalSources {
  readonly list: () => Promise<readonly Approval[]>;
  /**
   * Records the decision, then applies it. Returns whether the call was still waiting.
   * @throws OwlError when the operator decides on a call of their own.
   */
  readonly decide: (decision: {
    readonly id: string;
    readonly decision: "approve" | "deny";
    readonly by: string;
    readonly reason: string;
  }) => Promise<boolean>;
  readonly sandboxes: Sandboxes | undefined;
  /** The caller of a call that waits on this server. */
  readonly callerOf: (approval: Approval) => SandboxCaller | undefined;
}

const decisionSchema = z.strictObject({
  decision: z.enum(["approve", "deny"]),
  reason: z.string().max(500).default(""),
});

/** `approvals`: the calls that wait for an approval. */
export function approvalRoutes(sources: ApprovalSources): readonly ApiRoute[] {
  return [
    {
      method: "GET",
      path: "approvals",
      answer: async () => ({
        approvals: await Promise.all((await sources.list()).map((each) => toShown(each, sources))),
      }),
    },
    {
      method: "POST",
      path: "approvals/{id}",
      answer: async ({ operator, parts: [id = ""], body }) => {
        const { decision, reason } = bodyAs(decisionSchema, body);
        if (!(await sources.decide({ id, decision, reason, by: operator.id }))) throw noApproval();
        return { id, decision };
      },
    },
  ];
}

function noApproval(): OwlError {
  return new OwlError("route_not_found", "no call waits under this id: it was decided, or its time is over");
}

async function toShown(approval: Approval, { sandboxes, callerOf }: ApprovalSources): Promise<ApprovalNow> {
  const { id, principal, label, name, rule, reason, traceId } = approval;
  const args = argsOf(approval);
  const sessionId = args["session_id"];
  const named = typeof sessionId === "string" ? sessionId : undefined;
  const sandbox = sandboxes?.findMeant(named, callerOf(approval));
  const change = await proposedChange(sandbox, name, args);
  // The session id gives access to the sandbox, so the page shows the instance name.
  const shown = sessionId === undefined ? {} : { session_id: sandbox?.plan.instanceId ?? "[redacted]" };
  return {
    id,
    principal,
    ...(label !== undefined && { label }),
    tool: name,
    args: { ...args, ...shown },
    rule,
    ...(reason !== undefined && { reason }),
    traceId,
    createdAt: new Date(approval.createdAtMs).toISOString(),
    expiresAt: new Date(approval.expiresAtMs).toISOString(),
    ...(sandbox !== undefined && { sandbox: sandbox.plan.instanceId }),
    ...(change !== undefined && { change }),
  };
}

function argsOf({ args }: Approval): Readonly<Record<string, unknown>> {
  return typeof args === "object" && args !== null ? { ...args } : {};
}

type Change = ApprovalNow["change"];
type Arguments = Readonly<Record<string, unknown>>;
/** The content of a file, undefined when the file does not exist, or why it is not known. */
type Before = { readonly text: string } | { readonly missing: MissingText } | undefined;

const MAX_BEFORE_BYTES = 65_536;
const READ_TIMEOUT_MS = 5000;

/** The change to a file that the call would make. Known only for the two tools whose arguments contain it. */
export async function proposedChange(
  sandbox: Pick<Sandbox, "request"> | undefined,
  tool: string,
  args: Arguments,
): Promise<Change> {
  const { path } = args;
  if (typeof path !== "string" || (tool !== "file_write" && tool !== "file_replace")) return undefined;
  const before: Before = sandbox === undefined ? { missing: "unknown" } : await beforeOf(sandbox, path);
  return tool === "file_write" ? written(path, before, args) : replaced(path, before, args);
}

function written(path: string, before: Before, { content, mode, encoding }: Arguments): Change {
  if (typeof content !== "string" || encoding === "base64") return undefined;
  if (before === undefined) return { path, after: content };
  const isAppended = mode === "append";
  if ("missing" in before)
    return { path, beforeMissing: before.missing, after: content, ...(isAppended && { isPart: true }) };
  return { path, before: before.text, after: isAppended ? `${before.text}${content}` : content };
}

function replaced(path: string, before: Before, args: Arguments): Change {
  const { old_text: oldText, new_text: newText, replace_all: all } = args;
  if (typeof oldText !== "string" || typeof newText !== "string") return undefined;
  if (before === undefined || "missing" in before)
    return { path, before: oldText, beforeMissing: before?.missing ?? "gone", after: newText, isPart: true };
  const { text } = before;
  const after = all === true ? text.replaceAll(oldText, () => newText) : text.replace(oldText, () => newText);
  return { path, before: text, after };
}

async function beforeOf(sandbox: Pick<Sandbox, "request">, path: string): Promise<Before> {
  const params = { path, encoding: "auto", maxBytes: MAX_BEFORE_BYTES } as const;
  try {
    const read = await sandbox.request("file.read", params, { timeoutMs: READ_TIMEOUT_MS });
    if (read.isTruncated) return { missing: "large" };
    return read.encoding === "base64" ? { missing: "binary" } : { text: read.content };
  } catch (error) {
    const isNew = isOwlError(error) && error.facts["reason"] === "not_found";
    return isNew ? undefined : { missing: "gone" };
  }
}
