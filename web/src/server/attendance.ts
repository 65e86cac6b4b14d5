import { get } from "./api.ts";
import { touch } from "./last-input.ts";

/** Frequent enough for any reasonable session timeout. */
const TELL_MS = 30_000;
const INPUTS = ["pointerdown", "pointermove", "keydown", "wheel"];

/** Extends the session while the user only reads: automatic requests do not extend it. */
export function followInput(): () => void {
  let toldMs = Date.now();
  const onInput = (): void => {
    touch();
    if (Date.now() - toldMs < TELL_MS) return;
    toldMs = Date.now();
    // An expired session shows the login page, and the header shows an unreachable server.
    void get("session").catch(() => undefined);
  };
  for (const name of INPUTS) addEventListener(name, onInput, { passive: true, capture: true });
  return () => {
    for (const name of INPUTS) removeEventListener(name, onInput, { capture: true });
  };
}
