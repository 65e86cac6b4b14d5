import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { duplexPair } from "./duplex-pair.ts";
import { afterEach, expect, test } from "vitest";
import {
  RelayMultiplexer,
  encodeCredit,
  encodeFrame,
  relayEgress,
} from "../../../../src/sandbox/network/relay/multiplexer.ts";
import { temporaryFolder } from "../../config/temporary-folder.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listenOn(where: string | number, onConnection: (socket: Socket) => void): Promise<AddressInfo | string> {
  const server = createServer({ allowHalfOpen: true }, onConnection);
  server.listen(where);
  await once(server, "listening");
  closers.push(() => server.close());
  return server.address() ?? "";
}

interface World {
  readonly port: number;
  readonly ended: Promise<string>;
}

/** A door that does `onConnection`, and programs that reach it over one stream as if they were inside. */
async function open(onConnection: (socket: Socket) => void): Promise<World> {
  const door = `${temporaryFolder({})}/door`;
  await listenOn(door, onConnection);
  const [near, far] = duplexPair();
  closers.push(() => near.destroy());
  const { ready, ended } = relayEgress(near, door);
  const inside = new RelayMultiplexer({ stream: far });
  void inside.run();
  const address = await listenOn(0, (client) => inside.open(client));
  inside.hello();
  await ready;
  return { port: typeof address === "string" ? 0 : address.port, ended };
}

async function ask(port: number, words: Buffer): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(words);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

test("connections of one stream carry any number of bytes both ways, each its own", async () => {
  const { port } = await open((socket) => socket.pipe(socket));
  const words = [1, 70_000, 3_000_000, 0, 5].map((size, index) => Buffer.alloc(size, String(index)));
  const answers = await Promise.all(words.map((each) => ask(port, each)));
  expect(answers.map((each, index) => each.equals(words[index] ?? Buffer.alloc(1)))).toEqual(words.map(() => true));
});

test("a connection that nobody reads stands still, holds little, and does not hold the others up", async () => {
  let given = 0;
  const poured = (): number => given;
  const { port } = await open((socket) => {
    socket.once("data", (word: Buffer) => {
      if (word.toString() !== "flood") return void socket.end("answer");
      const pour = (): void => {
        for (let more = true; more && !socket.destroyed; given += 65_536) more = socket.write(Buffer.alloc(65_536));
      };
      socket.on("drain", pour).on("error", () => undefined);
      pour();
    });
  });
  const stuck = connect(port, "127.0.0.1");
  stuck.pause().write("flood");
  for (let before = -1; before !== poured() || poured() === 0;) {
    before = poured();
    for (let round = 0; round < 20; round += 1) expect((await ask(port, Buffer.from("ask"))).toString()).toBe("answer");
  }
  // What the kernel's own buffers and one window hold.
  expect(poured()).toBeLessThan(16 * 1024 * 1024);
  stuck.destroy();
});

test("a door that refuses ends the connection, not the line", async () => {
  const { port } = await open((socket) => void socket.destroy());
  expect((await ask(port, Buffer.from("word"))).length).toBe(0);
  expect((await ask(port, Buffer.from("word"))).length).toBe(0);
});

const OPEN = encodeFrame("open", 1);
const LONG = encodeFrame("data", 1);
LONG.writeUInt32BE(70_000, 5);
test.each<[string, Buffer]>([
  ["an unknown kind of frame", Buffer.alloc(9, 0xff)],
  ["a frame that is too long", LONG],
  ["bytes for a connection that never was", encodeFrame("data", 7, Buffer.from("x"))],
  ["a connection that cannot be opened", Buffer.concat([OPEN, OPEN])],
  ["more credit than there can be", Buffer.concat([OPEN, encodeCredit(1, 4_000_000_000)])],
  ["a credit without its number", Buffer.concat([OPEN, encodeFrame("credit", 1)])],
  [
    "more bytes than there is credit for",
    Buffer.concat([OPEN, ...Array.from({ length: 200 }, () => encodeFrame("data", 1, Buffer.alloc(65_536)))]),
  ],
])("a sandbox that sends %s loses its line, and its connections with it", async (reason, rubbish) => {
  const door = `${temporaryFolder({})}/door`;
  const gone: Promise<unknown>[] = [];
  await listenOn(door, (socket) =>
    gone.push(
      once(
        socket.pause().on("error", () => undefined),
        "close",
      ),
    ),
  );
  const [near, far] = duplexPair();
  const { ended } = relayEgress(near, door);
  far
    .on("error", () => undefined)
    .resume()
    .write(rubbish);
  expect(await ended).toBe(`the network stream is malformed: ${reason}`);
  await Promise.all(gone);
});

test("a sandbox that opens connections without end gets no more than there may be", async () => {
  const door = `${temporaryFolder({})}/door`;
  let count = 0;
  await listenOn(door, () => (count += 1));
  const [near, far] = duplexPair();
  closers.push(() => near.destroy());
  void relayEgress(near, door);
  far.resume();
  for (let id = 1; id <= 2000; id += 1) far.write(encodeFrame("open", id));
  const refused = encodeFrame("reset", 2000);
  let last = Buffer.alloc(0);
  far.on("data", (chunk: Buffer) => (last = Buffer.concat([last, chunk]).subarray(-refused.length)));
  while (!last.equals(refused)) await once(far, "data");
  expect(count).toBeLessThanOrEqual(256);
});
