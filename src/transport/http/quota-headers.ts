import { QUOTA_META_KEY, type Quota, quotaHeaders } from "../../governance/quota.ts";
import { isObject } from "../../mcp/json-rpc.ts";

const NOTHING: Readonly<Record<string, string>> = {};

/** The quota of the caller in the answer, as headers. For a batch, the quota in its last answer. */
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
  if (!isObject(data)) return NOTHING;
  if (data["kind"] === "governance_denied") return refusalHeaders(data);
  return isQuota(data["quota"]) ? quotaHeaders(data["quota"]) : NOTHING;
}

const WINDOWS: Readonly<Record<string, keyof Quota>> = { callsPerMinute: "per_minute", callsPerDay: "per_day" };

/** `retry-after`, and the quota headers when the refusal is due to a limit of calls. */
export function refusalHeaders(facts: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const { rule, limit, remaining, retry_after: seconds } = facts;
  if (typeof seconds !== "number") return NOTHING;
  const window = WINDOWS[String(rule).split(".").at(-1) ?? ""];
  if (window === undefined || typeof limit !== "number" || typeof remaining !== "number") return retryHeader(seconds);
  return { ...retryHeader(seconds), ...quotaHeaders({ [window]: { limit, remaining, reset_seconds: seconds } }) };
}

export function retryHeader(seconds: unknown): Readonly<Record<string, string>> {
  return typeof seconds === "number" ? { "retry-after": String(seconds) } : NOTHING;
}

/** The pipeline writes this key. A handler may write it too, so it is validated. */
function isQuota(value: unknown): value is Quota {
  return isObject(value) && Object.values(value).every((entry) => isObject(entry) && isWhole(entry["limit"]));
}

function isWhole(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value);
}
