import { createHmac, createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ChainMac } from "../../../../src/governance/ledger/chain.ts";

/** Any text that a program can hold: half characters, zeros and other signs among them. */
const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) });

describe("the chain's HMAC", () => {
  test("is the one of Node's own crypto, whatever the key and the texts before", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), fc.array(anyText), (bytes, texts) => {
        const key = createSecretKey(bytes);
        const mac = new ChainMac(key);
        for (const text of texts) expect(mac.of(text)).toBe(createHmac("sha256", key).update(text).digest("hex"));
      }),
    );
  });

  test("is that of several texts written one behind the other", () => {
    const key = createSecretKey(randomBytes(32));
    const texts = ["é", "", "x".repeat(1000), "漢".repeat(1000)];
    expect(new ChainMac(key).of(...texts)).toBe(createHmac("sha256", key).update(texts.join("")).digest("hex"));
  });

  test("holds for a long text after a short one, and for a short one after that", () => {
    const key = createSecretKey(randomBytes(32));
    const mac = new ChainMac(key);
    for (const text of ["short", "漢".repeat(100_000), "", "é".repeat(70)])
      expect(mac.of(text)).toBe(createHmac("sha256", key).update(text).digest("hex"));
  });

  test("refuses a key that would have to be hashed first", () => {
    expect(() => new ChainMac(createSecretKey(randomBytes(65)))).toThrow(RangeError);
  });
});
