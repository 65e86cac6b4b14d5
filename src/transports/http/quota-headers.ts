import { QUOTA_META_KEY, type Quota, quotaHeaders } from "../../governance/quota.ts";
import { isObject } from "../../protocol/json-rpc.ts";

const NOTHING: Readonly<Record<string, string>> = {};

/** What the answer says of the caller's quota, as headers: for a batch, that of its last answer. */
export function quotaHeadersOf(body: unknown): Readonly<Record<string, string>> {
  const answer: unknown = Array.isArray(body) ? body.at(-1) : body;
  if (!isObject(answer)) return NOTHING;
  const { result, error } = answer;
  if (isObject(result)) {
    const meta = result["_meta"];
    const quota = isObject(meta) ? meta[QUOTA_META_KEY] : undefined;
    return isQuota(quota) ? quotaHeaders(quota) : NOTHING;
  }
  const data = isObject(error) ? error["data"] : undefined;
  return isObject(data) && data["kind"] === "governance_denied" ? retryHeader(data["retry_after"]) : NOTHING;
}

export function retryHeader(seconds: unknown): Readonly<Record<string, string>> {
  return typeof seconds === "number" ? { "retry-after": String(seconds) } : NOTHING;
}

/** Only our own pipeline writes this key; a handler that does so too must not break the headers. */
function isQuota(value: unknown): value is Quota {
  return isObject(value) && Object.values(value).every((entry) => isObject(entry) && isWhole(entry["limit"]));
}

function isWhole(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value);
}
