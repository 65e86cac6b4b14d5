import { findKey } from "./keys.ts";

export const MASK = "********";

const MAX_SHOWN_CHARS = 120;
const SECRET_NAME = /secret|passw|token|credential|private|key|(^|_)auth([._]|$)/i;

/** A value in the form that output and logs may show. */
export function showValue(path: string, value: unknown): string {
  if (isHidden(path, value) && !isEmpty(value)) return MASK;
  const text = (JSON.stringify(value) ?? String(value)).replace(/\/\/[^/@\s"]+@/g, `//${MASK}@`);
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
}

/** An empty value has nothing to mask. */
export function isEmpty(value: unknown): boolean {
  return value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}

function isHidden(path: string, value: unknown): boolean {
  if (typeof value === "string" && value.includes("PRIVATE KEY")) return true;
  const key = findKey(path);
  if (key !== undefined) return key.secret;
  // The value of a misspelt key, or of a misplaced section, may have been meant for a secret key.
  return (
    SECRET_NAME.test(path) || (typeof value === "object" && value !== null && SECRET_NAME.test(JSON.stringify(value)))
  );
}
