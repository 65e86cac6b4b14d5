import { createContext, Script } from "node:vm";

const room: { run: () => unknown } = { run: () => undefined };
const context = createContext(room);
const script = new Script("run()");

/** Ends what takes longer than it may, in the middle of a regular expression too. @throws TypeError then. */
export function withinTime(limitMs: number, run: () => unknown): unknown {
  room.run = run;
  try {
    return script.runInContext(context, { timeout: limitMs });
  } catch (error) {
    if (!isTimeout(error)) throw error;
    throw new TypeError(`matches() took longer than ${limitMs} ms`, { cause: error });
  } finally {
    room.run = () => undefined;
  }
}

/** It may be an `Error` of the other context. */
function isTimeout(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
