import { useEffect, useState } from "preact/hooks";
import { openStream, type StreamOptions, type StreamState } from "./event-stream.ts";

/** Without a path there is none: what was got stays. Streams of one view rest while nobody looks at the tab: a browser has only six connections for one server. */
export function useStream(path: string | undefined, on: StreamOptions["on"]): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  useEffect(() => {
    if (path === undefined) return;
    let close: (() => void) | undefined;
    const follow = (): void => {
      if (document.hidden) {
        close?.();
        close = undefined;
      } else {
        close ??= openStream({ path, on, onState: setState });
      }
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      close?.();
    };
    // The listeners of a view stay the same for a path.
  }, [path]);
  return state;
}
