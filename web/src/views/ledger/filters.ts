import { place } from "../../routing/router.ts";

/** The names in the address and in requests to the server. */
export const FILTERS = [
  "client",
  "tool",
  "kind",
  "decision",
  "outcome",
  "rule",
  "sandbox",
  "trace",
  "from",
  "to",
  "text",
] as const;

export type Filters = Readonly<Partial<Record<(typeof FILTERS)[number], string>>>;

export function currentFilters(): Filters {
  const { query } = place.value;
  const pairs = FILTERS.map((name) => [name, query.get(name) ?? ""] as const).filter(([, value]) => value !== "");
  return Object.fromEntries(pairs);
}

/** Converts between ISO times and the value of a time field, which is in the local time zone. */
export function toLocalInput(iso: string | undefined): string {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return "";
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function fromLocalInput(text: string): string | undefined {
  const date = new Date(text);
  return text === "" || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
