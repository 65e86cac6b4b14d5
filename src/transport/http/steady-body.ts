import type { IncomingMessage } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";

/**
 * The body as it comes, however long that takes in all; a client that sends nothing for the given time is refused.
 * Only the client's own silence counts, not the time that the reader takes for what has come.
 */
export async function* steadyBody(request: IncomingMessage, stallMs: number): AsyncGenerator<Buffer> {
  // Leaving the loop early must not close the connection: the answer goes over it.
  const chunks: AsyncIterator<Buffer> = request.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const next = await beforeStall(chunks.next(), stallMs);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not waited for: while the client is silent, the reader would not come back from its own wait.
    chunks.return?.().catch(() => undefined);
  }
}

async function beforeStall<T>(chunk: Promise<T>, stallMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const stalled = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(stalledError(stallMs)), stallMs);
  });
  try {
    return await Promise.race([chunk, stalled]);
  } finally {
    clearTimeout(timer);
  }
}

function stalledError(stallMs: number): OwlError {
  return new OwlError("tool_failure", `nothing of the file came for ${stallMs / 1000} seconds`, {
    facts: { reason: "stalled" },
    hint: "send the file again without pauses, or raise http.requestTimeoutSeconds",
  });
}
