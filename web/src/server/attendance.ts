import { get } from "./api.ts";
import { touch } from "./last-input.ts";

/** Often enough for the shortest session that anybody would set. */
const TELL_MS = 30_000;
const INPUTS = ["pointerdown", "pointermove", "keydown", "wheel"];

/** Tells the server that somebody is here who only looks: what comes by itself does not keep a session. */
export function followInput(): () => void {
  let toldMs = Date.now();
  const onInput = (): void => {
    touch();
    if (Date.now() - toldMs < TELL_MS) return;
    toldMs = Date.now();
    // One that has ended shows the login page; a server that is away is told of at the top.
    void get("session").catch(() => undefined);
  };
  for (const name of INPUTS) addEventListener(name, onInput, { passive: true, capture: true });
  return () => {
    for (const name of INPUTS) removeEventListener(name, onInput, { capture: true });
  };
}
