import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeFrame, FrameError, FrameReader } from "../../../contract/json-rpc.ts";

function frame(body: string): Buffer {
  return Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** Cuts the bytes at the positions given, as a stream may. */
function cut(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const ends = [...new Set(positions.map((position) => position % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [...ends, bytes.length].map((end, index, all) => bytes.subarray(all[index - 1] ?? 0, end));
}

function bodiesOf(chunks: readonly Buffer[], maxBodyBytes = 1000): string[] {
  const reader = new FrameReader(maxBodyBytes);
  return chunks.flatMap((chunk) => [...reader.read(chunk)].map((body) => body.toString()));
}

test("a message is one frame whose length counts bytes", () => {
  expect(encodeFrame({ jsonrpc: "2.0", text: "é" })).toBe('Content-Length: 29\r\n\r\n{"jsonrpc":"2.0","text":"é"}');
});

test("bodies come out whole and in order, wherever the stream cuts them", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ minLength: 1, maxLength: 200, unit: "binary" }), { minLength: 1, maxLength: 10 }),
      fc.array(fc.nat()),
      (bodies, positions) => {
        const bytes = Buffer.concat(bodies.map(frame));
        const expected = bodies.map((body) => Buffer.from(body).toString());
        expect(bodiesOf(cut(bytes, positions))).toEqual(expected);
        expect(bodiesOf([...bytes].map((byte) => Buffer.from([byte])))).toEqual(expected);
      },
    ),
  );
});

test("a body of exactly the limit passes, and one byte more is refused before the body comes", () => {
  expect(bodiesOf([frame("x".repeat(1000))])).toEqual(["x".repeat(1000)]);
  expect(() => bodiesOf([Buffer.from("Content-Length: 1001\r\n\r\n")])).toThrow(
    new FrameError("1001 bytes are announced, and guest.maxFrameBytes is 1000"),
  );
});

describe("the header", () => {
  test.each([
    "content-length: 5\r\n\r\nhello",
    `Content-Length: 5\n\n${"hello".repeat(8)}`,
    "Content-Length: 05\r\n\r\nhello",
    "Content-Length: -5\r\n\r\nhello",
    "Content-Length: 0x5\r\n\r\nhello",
    "Content-Length: 0\r\n\r\n",
    "Content-Length: 5 \r\n\r\nhello",
    "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "Content-Type: x\r\n\r\n",
    "{}\r\n\r\n",
    "Content-Length: 99999999999\r\n\r\n",
    "A".repeat(10_000),
  ])("%j is refused, in one piece and byte by byte", (text) => {
    expect(() => bodiesOf([Buffer.from(text)])).toThrow(FrameError);
    expect(() => bodiesOf([...Buffer.from(text)].map((byte) => Buffer.from([byte])))).toThrow(FrameError);
  });

  test("that is wrong does not hide the frames before it", () => {
    const read: string[] = [];
    const reader = new FrameReader(1000);
    expect(() => {
      for (const body of reader.read(Buffer.from("Content-Length: 2\r\n\r\n{}garbage\r\n\r\n")))
        read.push(String(body));
    }).toThrow(FrameError);
    expect(read).toEqual(["{}"]);
  });
});

test("a stream that ends inside a frame is told from one that ends between two", () => {
  const reader = new FrameReader(1000);
  const states = ["Content-Le", "ngth: 2\r\n\r\n", "{", "}"].map((text) => {
    expect([...reader.read(Buffer.from(text))]).toHaveLength(text === "}" ? 1 : 0);
    return reader.isInFrame;
  });
  expect(states).toEqual([true, true, true, false]);
});
