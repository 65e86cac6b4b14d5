import { signal } from "@preact/signals";

/** One clock for every age on the page. */
export const clockMs = signal(Date.now());

setInterval(() => {
  if (!document.hidden) clockMs.value = Date.now();
}, 1_000);
