import { OwlError } from "../errors/owl-error.ts";

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

export interface PageOptions<T> {
  /** Which list this is: a cursor of one list is rejected by the others. */
  readonly list: string;
  readonly size: number;
  readonly cursor: string | undefined;
  /** What the items are sorted by. */
  readonly keyOf: (item: T) => string;
}

/** A cursor names the last item of its page, so that pages stay right when the list changes between two of them. */
export function paginate<T>(items: readonly T[], { list, size, cursor, keyOf }: PageOptions<T>): Page<T> {
  const after = cursor === undefined ? undefined : readCursor(list, cursor);
  const found = after === undefined ? 0 : items.findIndex((item) => keyOf(item) > after);
  const start = found === -1 ? items.length : found;
  const page = items.slice(start, start + size);
  const last = page.at(-1);
  if (last === undefined || start + size >= items.length) return { items: page };
  return { items: page, nextCursor: Buffer.from(JSON.stringify([list, keyOf(last)])).toString("base64url") };
}

function readCursor(list: string, cursor: string): string {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(value) && value[0] === list && typeof value[1] === "string") return value[1];
  } catch {
    // Any other cursor leads to the error below.
  }
  throw new OwlError("invalid_params", "the cursor is not one that this list gave out", {
    hint: "start again without a cursor",
  });
}
