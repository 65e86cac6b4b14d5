import type { ComponentChildren, JSX } from "preact";
import { ApiFailure } from "../server/api.ts";

/** Shows an error and its hint. */
export function Problem({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: () => void;
}): JSX.Element | null {
  if (error === undefined || error === null) return null;
  const failure = error instanceof ApiFailure ? error : undefined;
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{messageOf(error)}</strong> {failure?.hint}
      </p>
      {onRetry === undefined ? null : (
        <button type="button" class="small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children === undefined ? null : <p>{children}</p>}
    </div>
  );
}

/** Reserves the space of the content, so that the layout does not shift. */
export function Loading({ what }: { readonly what: string }): JSX.Element {
  return <p class="loading">Loading {what}…</p>;
}
