import { apiUrl, session } from "./api.ts";
import { currentSession } from "./current-session.ts";

export type StreamState = "connecting" | "open" | "lost";

export interface StreamOptions {
  readonly path: string;
  /** By the name of the event. One that answers "end" was the last, and nobody asks again. */
  readonly on: Readonly<Record<string, (data: string) => "end" | void>>;
  readonly onState?: (state: StreamState) => void;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8_000;

/**
 * Server-sent events that come back after a loss. The browser's own retry gives up at the first answer that is no stream,
 * as a proxy sends while the server restarts.
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

  // A stream does not say why it was refused: asking for the session does, and signs out when that has ended.
  const checkThenConnect = async (): Promise<void> => {
    try {
      session.value = await currentSession();
      if (session.peek() !== undefined) connect();
    } catch {
      // The server does not answer yet.
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
