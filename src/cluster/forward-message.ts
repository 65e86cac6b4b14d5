import { z } from "zod";
import { ERROR_KINDS, type ErrorKind } from "../errors/kinds.ts";
import { OwlError } from "../errors/owl-error.ts";

const call = {
  /** Whose sandbox it must be. Nothing else of the caller travels that could open anything: no scope, no claim, no token. */
  principal: z.string().min(1).max(4096),
  /** What the client calls itself, for the log. */
  label: z.string().max(4096).optional(),
  traceId: z.string().max(64),
  protocolVersion: z.string().max(32),
  timeoutMs: z.number().positive().max(2_147_483_647),
};

const messageSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("tool"), name: z.string().max(64), input: z.unknown(), ...call }),
  z.strictObject({
    kind: z.literal("file"),
    uri: z.string().max(65_536),
    variables: z.record(z.string(), z.string()),
    ...call,
  }),
]);

/** A call that runs on another server: the first one has governed it, and will record it. */
export type ForwardMessage = z.output<typeof messageSchema>;

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
]);

/** What the server with the sandbox tells while the call runs. */
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
