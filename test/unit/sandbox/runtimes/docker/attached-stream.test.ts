import { once } from "node:events";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { splitAttached } from "../../../../../src/sandbox/runtimes/docker/attached-stream.ts";

/** The engine's end of the connection, and what was written to it. */
class FakeSocket extends Duplex {
  readonly written: string[] = [];
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.written.push(String(chunk));
    done();
  }
}

function frame(stream: 1 | 2, text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return text;
}

test("both outputs come apart, wherever the pieces are cut", async () => {
  const pieces = fc.array(fc.tuple(fc.constantFrom<1 | 2>(1, 2), fc.stringMatching(/^[a-z]{0,40}$/)), {
    maxLength: 20,
  });
  await fc.assert(
    fc.asyncProperty(pieces, fc.integer({ min: 1, max: 13 }), async (frames, size) => {
      const socket = new FakeSocket();
      const { stream, diagnostics } = splitAttached(socket);
      const all = Buffer.concat(frames.map(([kind, text]) => frame(kind, text)));
      for (let at = 0; at < all.length; at += size) socket.push(all.subarray(at, at + size));
      socket.push(null);
      const [out, err] = await Promise.all([textOf(stream), textOf(diagnostics)]);
      const wanted = (kind: number): string => frames.map(([each, text]) => (each === kind ? text : "")).join("");
      expect([out, err]).toEqual([wanted(1), wanted(2)]);
    }),
    { numRuns: 50 },
  );
});

test("what is written goes to the container, and closing the stream closes the connection", async () => {
  const socket = new FakeSocket();
  const { stream } = splitAttached(socket);
  stream.write("hello");
  expect(socket.written).toEqual(["hello"]);
  const closed = once(socket, "close");
  stream.destroy();
  await closed;
});

test("a connection that breaks ends both outputs", async () => {
  const socket = new FakeSocket();
  const { stream, diagnostics } = splitAttached(socket);
  socket.push(frame(1, "last words").subarray(0, 12));
  socket.destroy(new Error("reset"));
  expect(await textOf(diagnostics)).toBe("");
  expect("last words").toContain(await textOf(stream));
});
