import { expect, test } from "vitest";
import { PieceReader, PieceWriter } from "../../../src/cluster/forward-connection.ts";
import { ForwardSeal } from "../../../src/cluster/forward-seal.ts";

const seal = new ForwardSeal("the servers of these tests share this key of theirs");
const envelope = seal.newEnvelope("AAAAAAAAAAAA");

function written(...texts: string[]): Buffer[] {
  const writer = new PieceWriter(seal, envelope);
  return texts.map((text) => writer.write(text));
}

test("pieces come out as they went in, however the network cuts them", () => {
  const bytes = Buffer.concat(written("one", "", "three"));
  for (const size of [1, 2, 3, 7, 1000]) {
    const reader = new PieceReader(seal, envelope);
    const texts: string[] = [];
    for (let at = 0; at < bytes.length; at += size) texts.push(...reader.read(bytes.subarray(at, at + size)));
    expect(texts).toEqual(["one", "", "three"]);
  }
});

test.each<[string, (pieces: Buffer[]) => Buffer[]]>([
  ["left out", ([, second = Buffer.alloc(0)]) => [second]],
  ["sent twice", ([first = Buffer.alloc(0)]) => [first, first]],
  ["swapped", ([first = Buffer.alloc(0), second = Buffer.alloc(0)]) => [second, first]],
  [
    "changed",
    ([first = Buffer.alloc(0)]) => [Buffer.from(first.map((byte, index) => (index === 6 ? byte ^ 1 : byte)))],
  ],
  ["of another answer", () => [new PieceWriter(seal, seal.newEnvelope("AAAAAAAAAAAA")).write("one")]],
  ["longer than anything may be", () => [Buffer.from([0xff, 0xff, 0xff, 0xff])]],
])("a piece that is %s is refused", (_name, change) => {
  const reader = new PieceReader(seal, envelope);
  expect(() => change(written("one", "two")).flatMap((piece) => [...reader.read(piece)])).toThrow("refused");
});

test("what was sealed as a question is no answer", () => {
  const sealed = seal.seal(envelope, "call", "one");
  const length = Buffer.alloc(4);
  length.writeUInt32BE(sealed.length);
  expect(() => [...new PieceReader(seal, envelope).read(Buffer.concat([length, sealed]))]).toThrow("refused");
});
