import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { capText, renderFailure, renderResult } from "../../../src/call/render-result.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import { returning } from "./fixture.ts";

const render = (output: Parameters<typeof returning>[0], definition = {}): ReturnType<typeof renderResult> =>
  renderResult(returning(output, definition), output, 1000);

describe("what a handler returns becomes a result", () => {
  test.each([
    ["text", "hello", { content: [{ type: "text", text: "hello" }] }],
    ["a number", 7, { content: [{ type: "text", text: "7" }] }],
    ["false", false, { content: [{ type: "text", text: "false" }] }],
    ["nothing", undefined, { content: [] }],
    ["null", null, { content: [] }],
    ["an object", { a: 1 }, { content: [{ type: "text", text: '{"a":1}' }], structuredContent: { a: 1 } }],
    ["an empty list", [], { content: [{ type: "text", text: "[]" }], structuredContent: [] }],
    ["a list of values", ["a"], { content: [{ type: "text", text: '["a"]' }], structuredContent: ["a"] }],
    ["a list of blocks", [{ type: "text", text: "hi" }], { content: [{ type: "text", text: "hi" }] }],
    [
      "a whole result",
      { content: [{ type: "text", text: "no" }], isError: true, _meta: { a: 1 } },
      { content: [{ type: "text", text: "no" }], isError: true, _meta: { a: 1 } },
    ],
    [
      "an object that only looks like a result",
      { content: "a page" },
      { content: [{ type: "text", text: '{"content":"a page"}' }], structuredContent: { content: "a page" } },
    ],
  ])("%s", async (_what, output, expected) => {
    expect(await render(output)).toEqual(expected);
  });

  test.each([
    ["text that is no text", { type: "text", text: 5 }],
    ["an image whose data is no text", { type: "image", data: 5, mimeType: "image/png" }],
    ["an image without a type", { type: "image", data: "AAAA" }],
    ["a link whose URI is no text", { type: "resource_link", uri: 5, name: "x" }],
    ["an embedded nothing", { type: "resource", resource: null }],
  ])("blocks that no client could read are not passed on as blocks: %s", async (_what, block) => {
    const { content } = await render([block]);
    expect(content).toMatchObject([{ type: "text", text: JSON.stringify([block]) }]);
  });

  test("a value against the tool's own output schema is the tool's failure", async () => {
    const output = z.object({ sum: z.number() });
    await expect(render({ sum: "x" }, { output })).rejects.toMatchObject({ kind: "execution_error" });
    await expect(render({ content: [] }, { output })).rejects.toMatchObject({ kind: "execution_error" });
    // A result that says it failed needs no structure.
    await expect(render({ content: [], isError: true }, { output })).resolves.toEqual({ content: [], isError: true });
  });

  test("a value that JSON cannot express is the tool's failure", async () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    await expect(render(circular)).rejects.toMatchObject({ kind: "execution_error" });
    await expect(render({ big: 10n })).rejects.toMatchObject({ kind: "execution_error" });
  });

  test("a failure is a summary line and a hint, and has no structured content", () => {
    const error = new OwlError("timeout", "it took too long");
    expect(renderFailure("echo", error, { kind: "timeout" })).toEqual({
      content: [{ type: "text", text: `echo failed: it took too long\nhint: ${error.hint}` }],
      isError: true,
      _meta: { "owlclaw/error": { kind: "timeout" } },
    });
  });
});

describe("long texts", () => {
  test("keep head and tail and say what is missing", () => {
    const cut = capText(`${"a".repeat(5000)}${"z".repeat(5000)}`, 1000);
    expect(cut).toMatch(/^a{500}\n\[\.\.\. 9000 of 10000 characters cut.*\]\nz{500}$/);
  });

  test("are cut to well-formed text, wherever the cut falls", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 50, maxLength: 300 }),
        fc.integer({ min: 2, max: 40 }),
        (text, max) => {
          const cut = capText(text, max);
          expect(Buffer.from(cut).toString()).toBe(cut);
        },
      ),
    );
  });

  test("short ones are left alone", () => {
    expect(capText("x".repeat(1000), 1000)).toBe("x".repeat(1000));
  });
});
