/** After this time without input, the user counts as inactive. */
const ATTENDED_MS = 60_000;

/** Loading the page counts as input. */
let lastInputMs = Date.now();

export function touch(): void {
  lastInputMs = Date.now();
}

export function isAttended(): boolean {
  return Date.now() - lastInputMs < ATTENDED_MS;
}
