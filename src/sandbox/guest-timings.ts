import { z } from "zod";
import { centred, type Span } from "../telemetry/tracing/span.ts";
import type { GuestMethod } from "./guest-methods.ts";
import { list } from "./guest-list.ts";

const MAX_TIMINGS = 20;
const MAX_MS = 86_400_000;

/** What a guest may say about its times. User code can take it over, so names are from a list, and numbers have an end. */
const timed = list(
  z.strictObject({
    name: z.enum(["request", "queue", "interpreter.start", "interpreter.run"]),
    startMs: z.number().min(0).max(MAX_MS),
    durationMs: z.number().min(0).max(MAX_MS),
  }),
  MAX_TIMINGS,
);

/**
 * Puts what the guest measured into the trace, and returns the answer without it. Times that are not as agreed are left out: they
 * are no reason to end a sandbox.
 */
export function takeTimings(span: Span, method: GuestMethod, answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null || !("timings" in answer)) return answer;
  const { timings, ...rest } = answer;
  record(span, method, timings);
  return rest;
}

function record(span: Span, method: GuestMethod, timings: unknown): void {
  const parsed = timed.safeParse(timings);
  if (!parsed.success) return;
  const [whole, ...parts] = parsed.data;
  if (whole?.name !== "request") return;
  const { durationMs: wholeMs } = whole;
  const inside = span.record({ name: method, kind: "server", ...centred(span, { ...whole, wholeMs }) });
  for (const { name, ...measured } of parts) inside.record({ name, ...centred(span, { ...measured, wholeMs }) });
}
