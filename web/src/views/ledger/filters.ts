import { place } from "../../routing/router.ts";

/** Names as in the address and as the server takes them. */
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

/** What a time field of a form holds, in the reader's own time zone, and back. */
export function toLocalInput(iso: string | undefined): string {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return "";
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function fromLocalInput(text: string): string | undefined {
  const date = new Date(text);
  return text === "" || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
