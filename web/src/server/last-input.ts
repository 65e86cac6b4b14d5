/** Who has touched nothing for so long may have left the screen alone. */
const ATTENDED_MS = 60_000;

/** Who loads the page is there. */
let lastInputMs = Date.now();

export function touch(): void {
  lastInputMs = Date.now();
}

export function isAttended(): boolean {
  return Date.now() - lastInputMs < ATTENDED_MS;
}
