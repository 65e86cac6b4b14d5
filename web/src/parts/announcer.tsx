import { signal } from "@preact/signals";
import type { JSX } from "preact";

const spoken = signal("");

/** Says one thing to screen readers, after what they are saying now. For what the reader caused or must know, nothing else. */
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
