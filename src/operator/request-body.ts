import type * as z from "zod";
import { describeIssues } from "../capability/define-tool.ts";
import { OwlError } from "../errors/owl-error.ts";

/** What the page sent, as agreed. @throws OwlError that says what is wrong with it. */
export function bodyAs<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: path.map(String).join("."), message }));
  throw new OwlError("invalid_params", `the request cannot be used: ${describeIssues(issues)}`);
}
