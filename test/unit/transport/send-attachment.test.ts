import { once } from "node:events";
import { createServer, get, type ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Attachment } from "../../../src/operator/api.ts";
import { sendAttachment } from "../../../src/transport/http/dashboard-api.ts";

let server: ReturnType<typeof createServer>;
let url = "";

beforeEach(async () => {
  server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** The next request's response, when it has come. */
async function nextResponse(): Promise<ServerResponse> {
  return await new Promise<ServerResponse>((resolve) => {
    server.once("request", (_request, answer) => resolve(answer));
  });
}

/** A file that says when it was let go of. */
function fileOf(pieces: AsyncIterable<string>) {
  const state = { isOpen: false, wasClosed: false };
  const chunks = async function* (): AsyncGenerator<string> {
    state.isOpen = true;
    try {
      yield* pieces;
    } finally {
      state.isOpen = false;
      state.wasClosed = true;
    }
  };
  return { state, attachment: new Attachment({ name: "a.txt", type: "text/plain", chunks: chunks() }) };
}

async function* manyPieces(): AsyncGenerator<string> {
  for (;;) {
    await Promise.resolve();
    yield "x".repeat(65_536);
  }
}

function isWhole(sent: Promise<unknown>): Promise<boolean> {
  return sent.then(
    () => true,
    () => false,
  );
}

test("a file whose reader went before its first piece came is let go of", async () => {
  const came = nextResponse();
  const request = get(url);
  request.on("error", () => undefined);
  const response = await came;
  const { state, attachment } = fileOf(
    (async function* () {
      await once(response, "close");
      yield* manyPieces();
    })(),
  );
  const sent = sendAttachment(attachment, response);
  expect(state).toEqual({ isOpen: true, wasClosed: false });
  request.destroy();
  expect(await isWhole(sent)).toBe(false);
  expect(state).toEqual({ isOpen: false, wasClosed: true });
});

test("a file whose reader goes in its middle is let go of, and so is one that was read to its end", async () => {
  const came = nextResponse();
  const request = get(url);
  request.on("error", () => undefined);
  const { state, attachment } = fileOf(manyPieces());
  const sent = sendAttachment(attachment, await came);
  const [answer] = await once(request, "response");
  await once(answer, "data");
  answer.on("error", () => undefined);
  request.destroy();
  expect(await isWhole(sent)).toBe(false);
  expect(state).toEqual({ isOpen: false, wasClosed: true });

  const cameAgain = nextResponse();
  const text = fetch(url).then((response) => response.text());
  const whole = fileOf(
    (async function* () {
      await Promise.resolve();
      yield "one ";
      yield "two";
    })(),
  );
  await sendAttachment(whole.attachment, await cameAgain);
  expect([await text, whole.state.wasClosed]).toEqual(["one two", true]);
});
