import { signal } from "@preact/signals";
import type { JSX } from "preact";

const spoken = signal("");

/**
 * Announces a text to screen readers when they are idle. Only for results of the user's own action, and for what the
 * user must know.
 */
export function announce(text: string): void {
  spoken.value = spoken.peek() === text ? `${text}\u00a0` : text;
}

export function Announcer(): JSX.Element {
  return (
    <div class="unseen" role="status" aria-live="polite">
      {spoken}
    </div>
  );
}
