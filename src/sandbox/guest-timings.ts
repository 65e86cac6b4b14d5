import { type GuestMethod, timingsSchema } from "../../contract/guest.ts";
import { centred, type Span } from "../telemetry/tracing/span.ts";

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
  const parsed = timingsSchema.safeParse(timings);
  if (!parsed.success) return;
  const [whole, ...parts] = parsed.data;
  if (whole?.name !== "request") return;
  const { durationMs: wholeMs } = whole;
  const inside = span.record({ name: method, kind: "server", ...centred(span, { ...whole, wholeMs }) });
  for (const { name, ...measured } of parts) inside.record({ name, ...centred(span, { ...measured, wholeMs }) });
}
