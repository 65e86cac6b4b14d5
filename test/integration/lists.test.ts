import Ajv2020 from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "./harness.ts";
import { modern, plain } from "./http-client.ts";
import { connect } from "./sdk-clients.ts";
import { expectedData, type JsonRpcAnswer, MODERN, type Unchecked } from "./wire-messages.ts";

type Ask = (method: string, params?: Record<string, unknown>) => Promise<JsonRpcAnswer>;

let many: HttpServer;
let few: HttpServer;

beforeAll(async () => {
  // What is told of limits is what a server has when nobody sets any.
  [many, few] = await Promise.all([startHttp({ handlers: "many" }), startHttp({ config: { governance: {} } })]);
});

afterAll(async () => {
  await many.stop();
  await few.stop();
});

const LISTS = [
  { method: "tools/list", key: "tools", sizes: [100, 50] },
  { method: "resources/list", key: "resources", sizes: [50, 50, 20] },
  { method: "resources/templates/list", key: "resourceTemplates", sizes: [50, 10] },
  { method: "prompts/list", key: "prompts", sizes: [100, 20] },
];

describe.each(["2025-03-26", MODERN])("pages in %s", (version) => {
  const ask: Ask = async (method, params = {}) =>
    (version === MODERN ? await modern(many.url, method, params) : await plain(many.url, method, params)).body;

  async function pages(method: string): Promise<Record<string, Unchecked>[]> {
    const found: Record<string, Unchecked>[] = [];
    let cursor: unknown;
    do {
      const { result } = await ask(method, cursor === undefined ? {} : { cursor });
      found.push(result ?? {});
      cursor = result?.["nextCursor"];
    } while (cursor !== undefined);
    return found;
  }

  test("[004-R4.9] 150 tools come in pages, each once, in the order of their names", async () => {
    const found = await pages("tools/list");
    expect(found.map(({ tools }) => tools.length)).toEqual([100, 50]);
    const names = found.flatMap(({ tools }) => tools.map(({ name }: { name: string }) => name));
    expect(names).toEqual(Array.from({ length: 150 }, (_, index) => `tool_${String(index).padStart(3, "0")}`));
  });

  test.each(LISTS)("$method has pages, and the last has no cursor", async ({ method, key, sizes }) => {
    const found = await pages(method);
    expect(found.map((page) => page[key].length)).toEqual(sizes);
    const all = found.flatMap((page) =>
      page[key].map(({ uri, uriTemplate, name }: Record<string, string>) => uri ?? uriTemplate ?? name),
    );
    expect(new Set(all).size).toBe(all.length);
  });

  test.each(LISTS)("$method refuses cursors that it did not give out", async ({ method }) => {
    const foreign = (await ask(method === "tools/list" ? "prompts/list" : "tools/list")).result?.["nextCursor"];
    for (const cursor of [
      "",
      "bad",
      "MTA=",
      foreign,
      Buffer.from('["tools"]').toString("base64url"),
      "é".repeat(5000),
    ]) {
      const { error } = await ask(method, { cursor });
      expect(error).toMatchObject({ code: -32602, data: expectedData("invalid_params") });
    }
    const notText = await ask(method, { cursor: 7 });
    expect(notText.error?.code).toBe(-32602);
  });
});

test("a real client walks the pages by itself", async () => {
  const door = { client: "v2", transport: "http", version: "2025-11-25" } as const;
  const client = await connect(door, many.url);
  expect((await client.listTools())["tools"]).toHaveLength(150);
  await client.close();
});

test("every tool's schemas are valid JSON Schema for a standard validator, and every hint is said", async () => {
  const ajv = new Ajv2020.default({ strict: false });
  const { tools } = (await plain(few.url, "tools/list")).body.result as { tools: Record<string, Unchecked>[] };
  const broken = tools.filter(
    ({ inputSchema, outputSchema = {} }) =>
      inputSchema.type !== "object" || !ajv.validateSchema(inputSchema) || !ajv.validateSchema(outputSchema),
  );
  expect(broken).toEqual([]);
  for (const { annotations } of tools) {
    expect(annotations).toMatchObject({
      readOnlyHint: expect.any(Boolean),
      destructiveHint: expect.any(Boolean),
      idempotentHint: expect.any(Boolean),
      openWorldHint: expect.any(Boolean),
    });
  }
});

describe("mcp.capabilities", () => {
  test.each(["2025-03-26", MODERN])(
    "[003-US1.1] [003-FR-002] lists the tools with versions and permissions, in %s",
    async (version) => {
      const ask = version === MODERN ? modern : plain;
      const { result } = (await ask(few.url, "mcp.capabilities")).body;
      expect(result).toMatchObject({
        server: { name: "owlclaw", version: expect.any(String) },
        protocolVersion: version,
        supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
      });
      const { tools } = result as { tools: Record<string, Unchecked>[] };
      expect(tools.find(({ name }) => name === "echo")).toEqual({
        name: "echo",
        title: "Echo",
        version: "2.1.0",
        description: "Answers with the text it was given",
        permissions: { allow: true, scope: "workspace" },
        constraints: { calls_per_minute: 600, calls_per_day: 50_000, concurrency: 64 },
      });
      for (const { version: toolVersion, permissions } of tools) {
        expect(toolVersion).toMatch(/^\d+\.\d+\.\d+$/);
        expect(permissions).toEqual({ allow: true, scope: expect.stringMatching(/^(workspace|network|exec)$/) });
      }
    },
  );
});
