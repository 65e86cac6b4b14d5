import { PassThrough, type Writable } from "node:stream";
import { finished } from "node:stream/promises";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Message } from "vscode-jsonrpc/node";
import * as guest from "../../../guest/frames.ts";
import * as host from "../../../src/sandbox/frames.ts";

function message(text: string): Message & { readonly text: string } {
  return { jsonrpc: "2.0", text };
}

interface Writes {
  write(message: Message): Promise<void>;
}

async function framesOf(writerOn: (stream: Writable) => Writes, texts: readonly string[]): Promise<Buffer> {
  const stream = new PassThrough();
  const writer = writerOn(stream);
  for (const text of texts) await writer.write(message(text));
  const bytes: unknown = stream.read();
  return bytes instanceof Buffer ? bytes : Buffer.alloc(0);
}

for (const [side, { FrameReader, FrameWriter }] of Object.entries({ guest, host })) {
  const writerOn = (stream: Writable): Writes => new FrameWriter(stream);

  test(`${side}: messages come out whole and in order, wherever the stream cuts them`, async () => {
    const texts = fc.array(fc.string({ unit: fc.constantFrom("a", "é", "😀", "\r", "\n", "}"), maxLength: 200 }), {
      minLength: 1,
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1, max: 100 }), async (sent, step) => {
        const bytes = await framesOf(writerOn, sent);
        const stream = new PassThrough();
        const got: Message[] = [];
        new FrameReader(stream).listen((each) => got.push(each));
        for (let at = 0; at < bytes.length; at += step) stream.write(bytes.subarray(at, at + step));
        stream.end();
        await finished(stream);
        expect(JSON.stringify(got)).toBe(JSON.stringify(sent.map(message)));
      }),
      { numRuns: 50 },
    );
  });

  test(`${side}: a frame is one piece on the stream`, async () => {
    const stream = new PassThrough();
    const pieces: string[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece.toString()));
    await new FrameWriter(stream).write(message("é"));
    expect(pieces).toEqual(['Content-Length: 29\r\n\r\n{"jsonrpc":"2.0","text":"é"}']);
  });

  test.for([
    ["bytes that are no JSON", "Content-Length: 3\r\n\r\n{x}"],
    ["a header without a length", "Content-Type: x\r\n\r\n{}"],
  ])(`${side}: %s is an error, and nothing is read after it`, async ([, bytes]) => {
    const stream = new PassThrough();
    const reader = new FrameReader(stream);
    const got: Message[] = [];
    const error = new Promise<Error>((resolve) => reader.onError(resolve));
    reader.listen((each) => got.push(each));
    stream.write(`${bytes}Content-Length: 2\r\n\r\n{}`);
    expect(await error).toBeInstanceOf(Error);
    stream.write("Content-Length: 2\r\n\r\n{}");
    expect(got).toEqual([]);
  });

  test(`${side}: who stops listening gets nothing more, not even of the same piece`, async () => {
    const stream = new PassThrough();
    const got: Message[] = [];
    const listening = new FrameReader(stream).listen((each) => {
      got.push(each);
      listening.dispose();
    });
    stream.write(await framesOf(writerOn, ["one", "two"]));
    await vi.waitFor(() => expect(got).toEqual([message("one")]), 20_000);
  });

  test(`${side}: a write that fails rejects`, async () => {
    const stream = new PassThrough();
    stream.on("error", () => {});
    const writer = new FrameWriter(stream);
    stream.destroy(new Error("gone"));
    await expect(writer.write(message("x"))).rejects.toThrow("destroyed");
  });
}

interface Verdict {
  readonly messages: readonly string[];
  readonly error: string | undefined;
}

/** What a reader makes of bytes that come in pieces. */
async function verdictOf(side: typeof guest | typeof host, bytes: Buffer, step: number): Promise<Verdict> {
  const stream = new PassThrough();
  const reader = new side.FrameReader(stream);
  const messages: string[] = [];
  let error: string | undefined;
  reader.onError((found) => (error = found.message));
  reader.listen((each) => messages.push(JSON.stringify(each)));
  for (let at = 0; at < bytes.length; at += step) stream.write(bytes.subarray(at, at + step));
  stream.end().resume();
  await finished(stream);
  return { messages, error };
}

const PIECES = [
  "Content-Length: 2\r\n\r\n{}",
  'Content-Length: 14\r\n\r\n{"a":"é😀"}',
  "Content-Length: 0\r\n\r\n",
  "Content-Length: 4\r\n\r\nnull",
  "Content-Length: 3\r\n\r\n{x}",
  "Content-Length: -1\r\n\r\n",
  "Content-Length: 0x2\r\n\r\n{}",
  "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
  "content-length: 2\r\n\r\n{}",
  "Content-Length: 99999999999999999999\r\n\r\n",
  "Content-Length: 900\r\n\r\n",
  " ",
  "\r\n\r\n",
  "\0",
  "{}",
];

test("the guest's twin and the host's come to the same verdict on the same bytes", async () => {
  const seen = new Set<string>();
  for (const [first, second] of PIECES.flatMap((each) => PIECES.map((other) => [each, other] as const))) {
    const bytes = Buffer.from(first + second);
    for (const step of [1, 7, bytes.length]) {
      const verdict = await verdictOf(host, bytes, step);
      expect(await verdictOf(guest, bytes, step), `${first}${second} by ${step}`).toEqual(verdict);
      seen.add(`${verdict.messages.length} ${verdict.error !== undefined}`);
    }
  }
  expect([...seen].toSorted()).toEqual(["0 false", "0 true", "1 false", "1 true", "2 false"]);
});
