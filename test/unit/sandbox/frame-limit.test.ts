import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameLimit, MalformedFrame } from "../../../src/sandbox/frame-limit.ts";

function frame(body: string): Buffer {
  return Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** Cuts the bytes at the places given, as a stream may. */
function cut(bytes: Buffer, starter: readonly number[]): Buffer[] {
  const ends = [...new Set(starter.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [...ends, bytes.length]
    .map((end, index, all) => bytes.subarray(all[index - 1] ?? 0, end))
    .filter((part) => part.length > 0);
}

async function pass(chunks: readonly Buffer[], maxFrameBytes = 1000): Promise<Buffer> {
  return buffer(Readable.from(chunks).pipe(new FrameLimit(maxFrameBytes)));
}

async function refusal(bytes: Buffer | string, maxFrameBytes = 1000): Promise<unknown> {
  const limit = new FrameLimit(maxFrameBytes);
  const failed = new Promise((resolve) => limit.once("error", resolve));
  limit.resume().end(Buffer.from(bytes));
  limit.once("end", () => limit.destroy(new Error("it was let through")));
  return failed;
}

test("frames pass unchanged, wherever the stream cuts them", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ minLength: 1, maxLength: 200, unit: "binary" }), { minLength: 1, maxLength: 10 }),
      fc.array(fc.nat()),
      async (bodies, starter) => {
        const bytes = Buffer.concat(bodies.map(frame));
        expect(await pass(cut(bytes, starter))).toEqual(bytes);
      },
    ),
  );
});

test("a frame of exactly the limit passes, and one byte more is the end", async () => {
  expect(await pass([frame("x".repeat(1000))])).toHaveLength(1024);
  expect(await refusal("Content-Length: 1001\r\n\r\n")).toEqual(
    new MalformedFrame("1001 bytes are announced, and guest.maxFrameBytes is 1000"),
  );
});

test.each([
  "content-length: 5\r\n\r\nhello",
  `Content-Length: 5\n\n${"hello".repeat(8)}`,
  "Content-Length: 05\r\n\r\nhello",
  "Content-Length: -5\r\n\r\nhello",
  "Content-Length: 0\r\n\r\n",
  "Content-Length: 5 \r\n\r\nhello",
  "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
  "Content-Type: x\r\n\r\n",
  "{}\r\n\r\n",
  "Content-Length: 99999999999\r\n\r\n",
  "A".repeat(10_000),
])("the header %j is refused", async (bytes) => {
  expect(await refusal(bytes)).toBeInstanceOf(MalformedFrame);
});

test("after the frames of a flood the sandbox waits, not the host", async () => {
  const limit = new FrameLimit(32 * 1024 * 1024);
  let received = 0;
  limit.on("data", (chunk: Buffer) => (received += chunk.length));
  const part = frame("x".repeat(8 * 1024 * 1024));
  limit.write(part);
  limit.write(part);
  limit.write(part);
  await new Promise((resolve) => setImmediate(resolve));
  expect(received).toBeLessThan(3 * part.length);
  limit.destroy();
});
