import { z } from "zod";
import { centred, type Span } from "../telemetry/tracing/span.ts";
import type { GuestMethod } from "./guest-methods.ts";

const MAX_TIMINGS = 20;
const MAX_MS = 86_400_000;

/** What a guest may say about its times. User code can take it over, so names are from a list, and numbers have an end. */
const timed = z.object({
  timings: z
    .array(
      z.object({
        name: z.enum(["request", "queue", "interpreter.start", "interpreter.run"]),
        startMs: z.number().min(0).max(MAX_MS),
        durationMs: z.number().min(0).max(MAX_MS),
      }),
    )
    .max(MAX_TIMINGS),
});

/** Puts what the guest measured into the trace. What is not as agreed is left out: times are no reason to end a sandbox. */
export function recordTimings(span: Span, method: GuestMethod, answer: unknown): void {
  const parsed = timed.safeParse(answer);
  if (!parsed.success) return;
  const [whole, ...parts] = parsed.data.timings;
  if (whole?.name !== "request") return;
  const { durationMs: wholeMs } = whole;
  const inside = span.record({ name: method, kind: "server", ...centred(span, { ...whole, wholeMs }) });
  for (const { name, ...measured } of parts) inside.record({ name, ...centred(span, { ...measured, wholeMs }) });
}
