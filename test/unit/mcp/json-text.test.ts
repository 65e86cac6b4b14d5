import fc from "fast-check";
import { expect, it } from "vitest";
import { markImmutable } from "../../../src/capability/content.ts";
import { toJsonParts } from "../../../src/mcp/json-rpc.ts";

function toJsonText(body: unknown): string {
  return Buffer.concat(toJsonParts(body).map((part) => Buffer.from(part))).toString();
}

const LONG = 'x\n"\\\u2028é😀\ud800'.repeat(20);

it("says what JSON.stringify says, but for the order of members", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "binary" }).map((more) => LONG + more),
  );
  const content = fc.record(
    { uri: fc.string(), text, mimeType: fc.string(), _meta: fc.object() },
    { requiredKeys: ["uri", "text"] },
  );
  const steady = content.map((each) => markImmutable(each));
  const result = fc.record(
    { contents: fc.array(fc.oneof(content, steady), { maxLength: 2 }), _meta: fc.object(), ttlMs: fc.nat() },
    { requiredKeys: [] },
  );
  const body = fc.oneof(
    fc.record({ jsonrpc: fc.constant("2.0"), id: fc.integer(), result }),
    fc.object(),
    fc.array(fc.object()),
  );
  fc.assert(
    fc.property(body, (value) => {
      const first = toJsonText(value);
      expect(JSON.parse(first)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(toJsonText(value)).toBe(first);
    }),
  );
});

it("a content with nothing but its text, and an empty one beside it", () => {
  for (const body of [
    { result: { contents: [{ text: LONG }] } },
    { result: { contents: [{}] } },
    { result: { contents: [] } },
    null,
    7,
  ])
    expect(JSON.parse(toJsonText(body))).toEqual(body);
});

it("writes again what may have changed since, and never what is steady", () => {
  const steady = markImmutable({ uri: "skill://a", text: LONG });
  const answer = (content: object) => toJsonParts({ jsonrpc: "2.0", id: 1, result: { contents: [content] } });
  expect(answer(steady)[1]).toBe(answer(steady)[1]);
  const own = { uri: "note://1", text: LONG };
  const before = answer(own);
  own.text = "other";
  expect(answer(own)).not.toEqual(before);
});
