import { once } from "node:events";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import { expect, test } from "vitest";
import { ANONYMOUS } from "../../../src/auth/principal.ts";
import { pipeAnswer } from "../../../src/transports/http/pipe-answer.ts";

/** A connection whose client takes nothing. */
class Stuck extends Socket {
  override _write(): void {
    // Nobody says that it was taken.
  }

  override _writev(): void {
    // Neither here.
  }
}

test("an answer that goes on after its token has ended is cut off, though its client has not read what came before", async () => {
  const connection = new Stuck();
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  response.assignSocket(connection);
  const errors: Error[] = [];
  response.on("error", (error) => errors.push(error));
  let say: (text: string) => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    const body = new ReadableStream({
      start(controller) {
        say = (text) => controller.enqueue(Buffer.from(text));
      },
      cancel: () => resolve(),
    });
    const answer = new Response(body, { headers: { "content-type": "text/event-stream" } });
    void pipeAnswer(answer, { response, principal: { ...ANONYMOUS, expiresAt: Date.now() / 1000 } });
  });
  say("data: before\n\n");
  await once(response, "prefinish");
  expect(response.writableEnded).toBe(true);
  say("data: after\n\n");
  await ended;
  expect(errors).toEqual([]);
  connection.destroy();
});

test("a long answer leaves nothing to listen for behind each of its pieces", async () => {
  const piece = Buffer.alloc(1_000_000, "x");
  let waits = 0;
  let mostListeners = 0;
  const server = createServer((_request, response) => {
    let count = 0;
    response.on("drain", () => (waits += 1));
    const body = new ReadableStream({
      pull(controller) {
        mostListeners = Math.max(mostListeners, response.listenerCount("close"));
        if ((count += 1) > 30) controller.close();
        else controller.enqueue(piece);
      },
    });
    void pipeAnswer(new Response(body), { response, principal: ANONYMOUS });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const received = await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer();
  server.close();
  expect(received.byteLength).toBe(30 * piece.length);
  expect(waits).toBeGreaterThan(10);
  expect(mostListeners).toBeLessThan(5);
});
