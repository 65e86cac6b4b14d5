import { z } from "zod";
import { ERROR_KINDS, type ErrorKind } from "../errors/kinds.ts";
import { OwlError } from "../errors/owl-error.ts";

const call = {
  /** Whose sandbox it must be. Nothing else of the caller travels: no scope, no claim, no token. */
  principal: z.string().min(1).max(4096),
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

const answerSchema = z.union([
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

export function readMessage(text: string): ForwardMessage {
  return messageSchema.parse(JSON.parse(text));
}

export function writeValue(value: unknown): string {
  return JSON.stringify({ value });
}

export function writeError({ kind, message, hint, retryable, facts }: OwlError): string {
  return JSON.stringify({ error: { kind, message, hint, retryable, facts } });
}

/** @throws OwlError that the other server has thrown. */
export function readAnswer(text: string): unknown {
  const answer = answerSchema.parse(JSON.parse(text));
  if (!("error" in answer)) return answer.value;
  const { kind, message, hint, retryable, facts } = answer.error;
  throw new OwlError(kind, message, { hint, retryable, facts });
}
