import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import { bodyAs } from "./request-body.ts";

const MAX_CHARS = 256;
const MAX_GROUPS = 100;
const MAX_CLAIMS_CHARS = 4096;

/** Whom a question about the policy is about: rules may look at what a token and a client say of themselves, too. */
export const callerSchema = z.strictObject({
  client: z.string().max(MAX_CHARS),
  groups: z.array(z.string().min(1).max(MAX_CHARS)).max(MAX_GROUPS).default([]),
  claims: z.record(z.string(), z.unknown()).default({}),
  label: z.string().min(1).max(MAX_CHARS).optional(),
});

export interface SupposedCaller {
  readonly client: string;
  readonly groups: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly label: string | undefined;
}

/** The same in an address: groups with commas between them, claims as JSON. @throws OwlError that says what is wrong. */
export function callerOf(query: URLSearchParams): SupposedCaller {
  const { label, ...caller } = bodyAs(callerSchema, {
    client: (query.get("client") ?? "").slice(0, MAX_CHARS),
    groups: (query.get("groups") ?? "")
      .split(",")
      .map((group) => group.trim())
      .filter((group) => group !== ""),
    claims: claimsOf(query.get("claims") ?? ""),
    ...(query.get("label") ? { label: query.get("label") } : {}),
  });
  return { ...caller, label };
}

function claimsOf(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text.slice(0, MAX_CLAIMS_CHARS));
  } catch (error) {
    throw new OwlError("invalid_params", 'claims must be JSON such as {"level": 3}', { cause: error });
  }
}
