import * as z from "zod";

/** A call that waits, as another process tells it. */
export const approvalSchema = z.object({
  id: z.string(),
  principal: z.string(),
  label: z.string().optional(),
  kind: z.string(),
  name: z.string(),
  /** Of the whole call, whatever is shown of it. */
  hash: z.string(),
  args: z.unknown(),
  /** Whether arguments were cut, or secrets taken out of them. */
  isCut: z.boolean().default(false),
  rule: z.string(),
  reason: z.string().optional(),
  traceId: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
});
