import { describe, expect, test } from "vitest";
import { z } from "zod";
import { compileTool } from "../../../src/capability/define-tool.ts";
import { compileSchema } from "../../../src/capability/schema.ts";

describe("schemas", () => {
  test("of a library are shown as JSON Schema 2020-12 and checked by the library", async () => {
    const schema = compileSchema(z.object({ a: z.number().default(1), b: z.string().optional() }), "input");
    expect(schema.json).toMatchObject({ type: "object", properties: { a: { type: "number", default: 1 } } });
    expect(schema.json["required"]).toBeUndefined();
    expect(await schema.check({})).toEqual({ ok: true, value: { a: 1 } });
    expect(await schema.check({ a: "x" })).toEqual({ ok: false, issues: [{ path: "a", message: expect.any(String) }] });
  });

  test("in JSON Schema are checked by a validator, with paths, formats and defaults", async () => {
    const schema = compileSchema(
      {
        type: "object",
        properties: {
          when: { type: "string", format: "date-time" },
          list: { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } },
          size: { type: "integer", default: 3 },
        },
        required: ["when"],
        additionalProperties: false,
      },
      "input",
    );
    expect(await schema.check({ when: "2026-01-01T00:00:00Z" })).toEqual({
      ok: true,
      value: { when: "2026-01-01T00:00:00Z", size: 3 },
    });
    const verdict = await schema.check({ when: "yesterday", list: [{ n: 1 }, { n: "x" }], other: 1 });
    expect(verdict).toEqual({
      ok: false,
      issues: expect.arrayContaining([
        { path: "when", message: expect.stringContaining("date-time") },
        { path: "list[1].n", message: expect.any(String) },
        { path: "other", message: expect.stringContaining("unknown") },
      ]),
    });
  });

  test("checking does not change what the caller sent", async () => {
    const sent = {};
    const schema = compileSchema({ type: "object", properties: { size: { default: 3 } } }, "input");
    expect(await schema.check(sent)).toEqual({ ok: true, value: { size: 3 } });
    expect(sent).toEqual({});
  });

  test("of a library that cannot show them are refused with what to use", () => {
    const silent = { "~standard": { version: 1, vendor: "quiet", validate: (value: unknown) => ({ value }) } } as const;
    expect(() => compileSchema(silent, "input")).toThrow(/quiet.*zod 4\.2/);
  });
});

describe("definitions of tools", () => {
  const base = { name: "tool", description: "A tool", run: () => "ran" };

  test.each([
    [{ ...base, name: "" }, "tool name"],
    [{ ...base, name: "with space" }, "tool name"],
    [{ ...base, name: "x".repeat(65) }, "tool name"],
    [{ ...base, description: "  " }, "needs a description"],
    [{ ...base, input: z.string() }, "must describe an object"],
  ])("that cannot be used are refused with the reason: %#", (definition, reason) => {
    expect(() => compileTool(definition)).toThrow(reason);
  });

  test("promise nothing that their author did not", () => {
    expect(compileTool(base)).toMatchObject({
      version: "1.0.0",
      scope: "exec",
      effect: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    });
    expect(compileTool({ ...base, effect: { readOnly: true } }).effect).toEqual({
      readOnly: true,
      destructive: false,
      idempotent: true,
      openWorld: true,
    });
  });

  test("keep `this` in a run method", async () => {
    const definition = {
      ...base,
      greeting: "hello",
      run(): string {
        return this.greeting;
      },
    };
    expect(await compileTool(definition).run({}, {} as never)).toBe("hello");
  });
});
