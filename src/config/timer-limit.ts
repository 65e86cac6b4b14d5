/** Longer delays overflow the 32-bit milliseconds of Node's timers and fire at once. */
export const MAX_TIMER_MS = 2_147_483_647;
