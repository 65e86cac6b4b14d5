import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "./harness.ts";
import { modern, plainCall } from "./http-client.ts";

let server: HttpServer;
beforeAll(async () => {
  server = await startHttp();
});
afterAll(() => server.stop());

const GOOD = { text: "ab", count: 3 };

describe("tools/call", () => {
  test("[002-parse] reads the name and the arguments and reaches the tool of that name with them", async () => {
    expect((await plainCall(server.url, "echo", { text: "one" })).body).toMatchObject({
      result: { content: [{ text: "one" }] },
    });
    expect((await plainCall(server.url, "typed", GOOD)).body).not.toHaveProperty("error");
    expect((await plainCall(server.url, "no_such_tool", {})).body).toMatchObject({
      error: { data: { kind: "tool_not_found" } },
    });
  });
});

describe("arguments that do not fit the schema", () => {
  test.each([
    ["a required one is missing", { count: 3 }, /text/],
    ["one has the wrong type", { ...GOOD, count: "three" }, /count.*integer/],
    ["one is below its range", { ...GOOD, count: 0 }, /count.*>= 1/],
    ["one is above its range", { ...GOOD, count: 11 }, /count.*<= 10/],
    ["one is too short", { ...GOOD, text: "a" }, /text.*2/],
  ])("[002-validate] %s: the error says which and why, and how to go on", async (_name, args, reason) => {
    const hint = "the arguments are text, count, flag, choice, items; correct the ones named above and call it again";
    expect((await plainCall(server.url, "typed", args)).body).toMatchObject({
      error: { code: -32602, message: expect.stringMatching(reason), data: { kind: "invalid_params", hint } },
    });
    const { body } = await modern(server.url, "tools/call", { name: "typed", arguments: args });
    expect(body).toMatchObject({
      result: { isError: true, content: [{ type: "text", text: expect.stringMatching(reason) }] },
    });
    expect(JSON.stringify(body)).toContain(`\\nhint: ${hint}`);
  });
});
