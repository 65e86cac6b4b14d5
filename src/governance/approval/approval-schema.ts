import * as z from "zod";

/** A call that waits, as another process tells it. */
export const approvalSchema = z.object({
  id: z.string(),
  principal: z.string(),
  label: z.string().optional(),
  kind: z.string(),
  name: z.string(),
  args: z.unknown(),
  rule: z.string(),
  reason: z.string().optional(),
  traceId: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
});
