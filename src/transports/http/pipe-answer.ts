import { endWithToken } from "./event-stream.ts";
import { type HttpExchange, onClose } from "./exchange-io.ts";

/** Sends an answer as it comes, to a client that may be slow, until its token ends. */
export async function pipeAnswer(
  answer: Response,
  { response, principal }: Pick<HttpExchange, "response" | "principal">,
): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries([...answer.headers].filter(([name]) => name !== "connection")));
  response.flushHeaders();
  endWithToken(response, principal.expiresAt);
  const reader = answer.body?.getReader();
  onClose(response, () => void reader?.cancel().catch(() => undefined));
  let chunk = await reader?.read();
  // It ends with its token, too, while its client is still reading what came before.
  while (chunk !== undefined && !chunk.done && !response.destroyed && !response.writableEnded) {
    if (!response.write(chunk.value)) await drained(response);
    chunk = await reader?.read();
  }
  if (chunk?.done === false) void reader?.cancel().catch(() => undefined);
  response.end();
}

/** Leaves no listener behind: a long answer waits many times. */
function drained(response: HttpExchange["response"]): Promise<void> {
  return new Promise((resolve) => {
    const goOn = (): void => {
      response.off("drain", goOn).off("close", goOn);
      resolve();
    };
    response.once("drain", goOn);
    onClose(response, goOn);
  });
}
