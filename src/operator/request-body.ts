import type * as z from "zod";
import { describeIssues } from "../capability/define-tool.ts";
import { OwlError } from "../errors/owl-error.ts";

/**
 * The validated body of a request.
 * @throws OwlError with the reason.
 */
export function bodyAs<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: path.map(String).join("."), message }));
  throw new OwlError("invalid_params", `the request cannot be used: ${describeIssues(issues)}`);
}

/**
 * A whole number of a query, not negative.
 * @throws OwlError with the name.
 */
export function numberOf(
  query: URLSearchParams,
  name: string,
  { fallback, max }: { readonly fallback: number; readonly max: number },
): number {
  const text = query.get(name);
  if (text === null || text === "") return fallback;
  const number = Number(text);
  if (/^\d{1,16}$/.test(text) && number <= max) return number;
  throw new OwlError("invalid_params", `${name} must be a whole number up to ${max}`);
}

/**
 * A time of a query.
 * @throws OwlError with the name.
 */
export function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  throw new OwlError("invalid_params", `${name} must be a time such as 2026-11-15T00:00:00Z`);
}
