import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatSkillUri, parseSkillUri, segmentProblem, skillMatcher } from "../../../src/capability/skill-uri.ts";

const segment = fc
  .oneof(
    fc.string({ minLength: 1, unit: "grapheme" }),
    fc.string({ minLength: 1, unit: "binary" }),
    fc.constantFrom("a*b", "%41", "ä", "x y", "(1)", "#?"),
  )
  .map((text) => text.normalize("NFC"))
  .filter((text) => segmentProblem(text) === undefined);
const path = fc.array(segment, { minLength: 1, maxLength: 5 });

function refusal(uri: string): string {
  try {
    parseSkillUri(uri);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "accepted";
}

describe("URIs of skills", () => {
  it("[004-R15.1] a URI is taken apart into category and name", () => {
    expect(parseSkillUri("skill://ecommerce/refund")).toEqual(["ecommerce", "refund"]);
    expect(parseSkillUri("skill://ecommerce/returns/refund/references/limits.md")).toEqual([
      "ecommerce",
      "returns",
      "refund",
      "references",
      "limits.md",
    ]);
  });

  it("[004-R15.5] path to URI to path is the identity, for every path that can be served", () => {
    fc.assert(
      fc.property(path, (parts) => {
        expect(parseSkillUri(formatSkillUri(parts))).toEqual(parts);
      }),
    );
  });

  it("[004-R15.5] every URI of a path is one that URL parsers understand and leave as it is", () => {
    fc.assert(
      fc.property(path, (parts) => {
        expect(new URL(formatSkillUri(parts)).href).toBe(formatSkillUri(parts));
      }),
    );
  });

  it("all spellings of a URI have the one canonical form", () => {
    expect(formatSkillUri(parseSkillUri("skill://shop/%72efund"))).toBe("skill://shop/refund");
    expect(formatSkillUri(parseSkillUri("skill://shop/Q&A"))).toBe(formatSkillUri(parseSkillUri("skill://shop/Q%26A")));
  });

  it.each([
    ["http://ecommerce/refund", /scheme must be "skill"/],
    ["SKILL://ecommerce/refund", /scheme must be "skill"/],
    ["ecommerce/refund", /scheme must be "skill"/],
  ])("[004-R15.3] %s is refused: its scheme is another", (uri, reason) => expect(refusal(uri)).toMatch(reason));

  it.each([
    ["skill://", /empty segment/],
    ["skill:///name", /empty segment/],
    ["skill://category/", /empty segment/],
    ["skill://category//name", /empty segment/],
    ["skill://category/../name", /leads elsewhere/],
    ["skill://category/%2e%2e/name", /leads elsewhere/],
    ["skill://category/./name", /leads elsewhere/],
    ["skill://category/a%2Fb", /slash/],
    ["skill://category/a%5Cb", /backslash/],
    ["skill://category/a%00b", /control character/],
    ["skill://category/%E0%A4%A", /percent-encoded/],
    ["skill://category/%ff", /percent-encoded/],
    ["skill://category/100%", /percent-encoded/],
    ["skill://category/e\u0301", /NFC/],
    ["skill://category/name?x=1", /query or fragment/],
    ["skill://category/name#part", /query or fragment/],
    ["skill://category/*", /wildcard/],
    [`skill://category/${"n".repeat(5000)}`, /longer than/],
  ])("[004-R15.2] %s is refused, and the message says why", (uri, reason) => expect(refusal(uri)).toMatch(reason));

  it("what is refused is never taken for a path", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        let parts: readonly string[] = [];
        try {
          parts = parseSkillUri(`skill://${text}`);
        } catch {
          return;
        }
        for (const part of parts) expect(segmentProblem(part)).toBeUndefined();
      }),
    );
  });

  it("[004-R15.4] wildcards: a star within a segment, two over segments", () => {
    const fits = (pattern: string, ...parts: string[]): boolean => skillMatcher(pattern)(parts);
    expect(fits("skill://ecommerce/*", "ecommerce", "refund")).toBe(true);
    expect(fits("skill://ecommerce/*", "ecommerce", "returns", "refund")).toBe(false);
    expect(fits("skill://ecommerce/**", "ecommerce", "returns", "refund")).toBe(true);
    expect(fits("skill://*/refund", "ecommerce", "refund")).toBe(true);
    expect(fits("skill://ecommerce/re*d", "ecommerce", "refund")).toBe(true);
    expect(fits("skill://ecommerce/re*d", "ecommerce", "return")).toBe(false);
    expect(fits("skill://**/refund", "refund")).toBe(true);
    expect(fits("skill://a.c/*", "abc", "x")).toBe(false);
    expect(() => skillMatcher("http://ecommerce/*")).toThrow(/scheme/);
    expect(() => skillMatcher("skill://../*")).toThrow(/leads elsewhere/);
  });

  it("a pattern without wildcards fits exactly its own path", () => {
    fc.assert(
      fc.property(path, (parts) => {
        expect(skillMatcher(formatSkillUri(parts))(parts)).toBe(true);
      }),
    );
  });

  it("a pattern of many stars is answered at once", () => {
    const long = Array.from({ length: 60 }, () => "a");
    expect(skillMatcher(`skill://${"**/".repeat(60)}b`)(long)).toBe(false);
    expect(skillMatcher(`skill://${"*a".repeat(20)}b`)(["a".repeat(60)])).toBe(false);
  });
});
