import { apiUrl, session } from "./api.ts";
import { currentSession } from "./current-session.ts";

export type StreamState = "connecting" | "open" | "lost";

export interface StreamOptions {
  readonly path: string;
  /** Listeners by event name. A listener that returns "end" closes the stream for good. */
  readonly on: Readonly<Record<string, (data: string) => "end" | void>>;
  readonly onState?: (state: StreamState) => void;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8_000;

/**
 * Server-sent events that reconnect after a loss. EventSource itself stops retrying at the first response that is not a
 * stream, such as the error page of a proxy while the server restarts.
 */
export function openStream(options: StreamOptions): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retryMs = FIRST_RETRY_MS;
  let isClosed = false;

  const connect = (): void => {
    if (isClosed) return;
    source = new EventSource(apiUrl(options.path));
    source.onopen = () => {
      retryMs = FIRST_RETRY_MS;
      options.onState?.("open");
    };
    source.onerror = () => retry();
    for (const [name, listener] of Object.entries(options.on)) {
      source.addEventListener(name, (event) => {
        if (listener(String(event.data)) === "end") close();
      });
    }
  };

  const retry = (): void => {
    source?.close();
    if (isClosed) return;
    options.onState?.("lost");
    clearTimeout(timer);
    timer = setTimeout(() => void checkThenConnect(), retryMs);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  };

  // EventSource does not report why a stream was refused. Requesting the session does, and logs out when it has
  // expired.
  const checkThenConnect = async (): Promise<void> => {
    try {
      session.value = await currentSession();
      if (session.peek() !== undefined) connect();
    } catch {
      // The server does not respond yet.
      retry();
    }
  };

  const close = (): void => {
    isClosed = true;
    clearTimeout(timer);
    source?.close();
  };

  options.onState?.("connecting");
  connect();
  return close;
}
