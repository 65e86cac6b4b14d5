import { useEffect, useState } from "preact/hooks";
import { openStream, type StreamOptions, type StreamState } from "./event-stream.ts";

/**
 * Follows a stream. Without a path no stream is open, and received data stays. The stream is closed while the tab is
 * hidden, because a browser has only six connections per server.
 */
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
    // The listeners of a view do not change for a path.
  }, [path]);
  return state;
}
