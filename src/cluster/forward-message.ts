import { z } from "zod";
import { ERROR_KINDS, type ErrorKind } from "../errors/kinds.ts";
import { OwlError } from "../errors/owl-error.ts";

const call = {
  /** Whose sandbox it must be. Nothing else of the caller travels that could open anything: no scope, no claim, no token. */
  principal: z.string().min(1).max(4096),
  /** What the client calls itself, for the log. */
  label: z.string().max(4096).optional(),
  traceId: z.string().max(64),
  /** Where the first server stands in the trace, while it traces. */
  traceparent: z.string().max(64).optional(),
  tracestate: z.string().max(512).optional(),
  protocolVersion: z.string().max(32),
  timeoutMs: z.number().positive().max(2_147_483_647),
};

const transfer = z.string().max(64);
const path = z.string().max(65_536);
const place = z.number().int().nonnegative();

/** Whole files go in pieces: each is a message of its own, and the next one waits for its answer. */
const stepSchema = z.discriminatedUnion("do", [
  z.strictObject({ do: z.literal("open"), sessionId: z.string().max(256), isLive: z.boolean() }),
  z.strictObject({ do: z.literal("read"), transfer, path }),
  z.strictObject({ do: z.literal("bytes"), transfer, start: place, end: place }),
  z.strictObject({ do: z.literal("next"), transfer }),
  z.strictObject({ do: z.literal("write"), transfer, path }),
  z.strictObject({ do: z.literal("push"), transfer, data: z.string() }),
  z.strictObject({ do: z.literal("end"), transfer }),
  z.strictObject({ do: z.literal("release"), transfer }),
]);

const messageSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("tool"), name: z.string().max(64), input: z.unknown(), ...call }),
  z.strictObject({
    kind: z.literal("file"),
    uri: z.string().max(65_536),
    variables: z.record(z.string(), z.string()),
    ...call,
  }),
  z.strictObject({
    kind: z.literal("session"),
    endpoint: z.enum(["mcp", "sse"]),
    method: z.enum(["POST", "GET", "DELETE"]),
    sessionId: z.string().max(64),
    headers: z.record(z.string(), z.string()),
    /** The client's own: the server with the session looks for itself who asks. */
    authorization: z.string().optional(),
    label: call.label,
    traceId: call.traceId,
    body: z.string(),
  }),
  z.strictObject({
    kind: z.literal("task"),
    action: z.enum(["get", "update", "cancel"]),
    taskId: z.string().max(64),
    inputResponses: z.record(z.string(), z.unknown()),
    principal: call.principal,
    /** Groups among them: the server with the task judges, and a rule may have come over this client since it began. */
    claims: z.record(z.string(), z.unknown()),
    label: call.label,
    traceId: call.traceId,
  }),
  z.strictObject({
    kind: z.literal("transfer"),
    step: stepSchema,
    principal: call.principal,
    traceId: call.traceId,
  }),
]);

/** What another server is asked to do. */
export type ForwardMessage = z.output<typeof messageSchema>;
/** A call that runs on another server: the first one has governed it, and will record it. */
export type SandboxMessage = Extract<ForwardMessage, { readonly kind: "tool" | "file" }>;
/** A request of a client whose session is on another server, which governs and records it. */
export type SessionMessage = Extract<ForwardMessage, { readonly kind: "session" }>;
/** A piece of a file that goes into a sandbox or out of it. */
export type TransferMessage = Extract<ForwardMessage, { readonly kind: "transfer" }>;
export type TransferStep = TransferMessage["step"];
/** What a client wants to know of a task, or says to it. */
export type TaskMessage = Extract<ForwardMessage, { readonly kind: "task" }>;

const newsSchema = z.discriminatedUnion("news", [
  z.strictObject({
    news: z.literal("progress"),
    done: z.number(),
    total: z.number().optional(),
    message: z.string().optional(),
  }),
  z.strictObject({
    news: z.literal("log"),
    level: z.enum(["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]),
    data: z.unknown(),
    logger: z.string().optional(),
  }),
  /** What the call has moved over its sandbox's network so far, to be paid where it was governed. */
  z.strictObject({ news: z.literal("egress"), bytes: z.number().int().nonnegative() }),
  /** The answer to a request of a session, as it goes to the client. */
  z.strictObject({
    news: z.literal("head"),
    status: z.number().int().min(200).max(599),
    headers: z.record(z.string(), z.string()),
  }),
  z.strictObject({ news: z.literal("data"), text: z.string() }),
  /** Nothing yet; but somebody is there. */
  z.strictObject({ news: z.literal("alive") }),
]);

/** What the other server tells before it is done. */
export type ForwardNews = z.output<typeof newsSchema>;

const outcomeSchema = z.union([
  z.strictObject({ value: z.unknown() }),
  z.strictObject({
    error: z.strictObject({
      kind: z.string().refine((kind): kind is ErrorKind => Object.hasOwn(ERROR_KINDS, kind)),
      message: z.string(),
      hint: z.string(),
      retryable: z.boolean(),
      facts: z.record(z.string(), z.unknown()),
    }),
  }),
]);

/** How the call ended. */
export type ForwardOutcome = z.output<typeof outcomeSchema>;

const pieceSchema = z.union([newsSchema, outcomeSchema]);

export function readMessage(text: string): ForwardMessage {
  return messageSchema.parse(JSON.parse(text));
}

export function readPiece(text: string): ForwardNews | ForwardOutcome {
  return pieceSchema.parse(JSON.parse(text));
}

export function writeNews(news: ForwardNews): string {
  return JSON.stringify(news);
}

export function writeValue(value: unknown): string {
  return JSON.stringify({ value });
}

export function writeError({ kind, message, hint, retryable, facts }: OwlError): string {
  return JSON.stringify({ error: { kind, message, hint, retryable, facts } });
}

/** @throws OwlError that the other server has thrown. */
export function valueOf(outcome: ForwardOutcome): unknown {
  if (!("error" in outcome)) return outcome.value;
  const { kind, message, hint, retryable, facts } = outcome.error;
  throw new OwlError(kind, message, { hint, retryable, facts });
}
