import { QUOTA_META_KEY, type Quota } from "../governance/quota.ts";

/** What is left to the caller, as the `_meta` of a result. */
export function quotaMeta(quota: Quota | undefined): { readonly _meta?: Readonly<Record<string, unknown>> } {
  return quota === undefined ? {} : { _meta: { [QUOTA_META_KEY]: quota } };
}
