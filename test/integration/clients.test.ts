import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "./harness.ts";
import { connect, type Door, type Loose, type Progress, type TestClient } from "./sdk-clients.ts";
import { expectedData, MODERN } from "./wire-messages.ts";

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp();
});

afterAll(() => server.stop());

const LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const V2_TRANSPORTS = ["stdio", "http"] as const;

const DOORS: readonly Door[] = [
  ...V2_TRANSPORTS.flatMap((transport) => LEGACY.map((version) => ({ client: "v2", transport, version }) as const)),
  ...V2_TRANSPORTS.flatMap((transport) => [
    { client: "v2", transport, version: MODERN, mode: { mode: { pin: MODERN } } } as const,
    { client: "v2", transport, version: MODERN, mode: { mode: "auto" } } as const,
  ]),
  { client: "v1", transport: "stdio", version: "2025-11-25" },
  { client: "v1", transport: "http", version: "2025-11-25" },
  { client: "v1", transport: "sse", version: "2025-11-25" },
  { client: "v2", transport: "sse", version: "2024-11-05" },
  { client: "1.0", transport: "stdio", version: "2024-11-05" },
];

describe.each(DOORS)("SDK $client over $transport, $version ($mode.mode)", (door) => {
  const isModern = door.version === MODERN;
  let client: TestClient;

  beforeAll(async () => {
    client = await connect(door, server.url);
  });

  afterAll(() => client.close());

  const call = async (name: string, args: Loose = {}): Promise<Loose> => client.callTool({ name, arguments: args });
  const firstText = async (name: string, args: Loose = {}): Promise<unknown> =>
    (await call(name, args))["content"][0].text;

  test("[004-R1.3] [000-R1.4] connects, learns what the server can do, and both mean the same revision", async () => {
    expect(client.getServerVersion()).toMatchObject({ name: "owlclaw", version: expect.any(String) });
    expect(client.getServerCapabilities()).toMatchObject({
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    });
    expect(JSON.parse(String(await firstText("who_am_i")))).toMatchObject({ protocolVersion: door.version });
  });

  test("[004-R1.4] [000-R1.3] [004-R4.1] [004-R4.2] [004-R4.3] lists every handler with its name, description and schemas", async () => {
    const { tools } = (await client.listTools()) as { tools: Loose[] };
    expect(tools.map(({ name }) => name)).toEqual([...TOOLS].toSorted());
    expect(tools.find(({ name }) => name === "add")).toMatchObject({
      name: "add",
      description: "Adds two numbers",
      inputSchema: {
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number", default: 1 } },
        required: ["a"],
      },
      // The oldest client drops what its revision did not have.
      ...(door.client !== "1.0" && { outputSchema: { type: "object", properties: { sum: { type: "number" } } } }),
    });
  });

  test("[004-R1.5] [000-R1.2] [004-R5.1] calls a tool and gets its result, defaults filled in", async () => {
    expect(await firstText("echo", { text: "grüezi 👋" })).toBe("grüezi 👋");
    expect(await firstText("add", { a: 41 })).toBe('{"sum":42}');
  });

  test("gets structured output beside the text", async () => {
    if (door.client === "1.0") return;
    expect((await call("add", { a: 1, b: 2 }))["structuredContent"]).toEqual({ sum: 3 });
    // Before 2026-07-28 structured content is an object, so a list is wrapped.
    const list = (await call("list"))["structuredContent"];
    expect(list).toEqual(isModern ? ["one", "two"] : { result: ["one", "two"] });
  });

  test("gets images, audio, links and embedded resources", async () => {
    expect((await call("picture"))["content"]).toMatchObject([
      { type: "image", mimeType: "image/png", data: expect.any(String) },
    ]);
    expect((await call("embedded"))["content"]).toMatchObject([
      { type: "resource", resource: { uri: "fixture://greeting", text: "hello" } },
      { type: "text", text: "and a word" },
    ]);
    // The oldest client knows neither and would refuse the whole result.
    if (door.client === "1.0") return;
    expect((await call("sound"))["content"]).toMatchObject([{ type: "audio", mimeType: "audio/wav" }]);
    expect((await call("link"))["content"]).toMatchObject([{ type: "resource_link", uri: "fixture://greeting" }]);
  });

  test("[004-R1.6] [004-R1.7] lists and reads resources, text and binary, and templates", async () => {
    const { resources } = (await client.listResources()) as { resources: Loose[] };
    expect(resources.map(({ uri }) => uri)).toEqual([
      "fixture://broken",
      "fixture://counter",
      "fixture://greeting",
      "fixture://pixel",
    ]);
    expect(resources[2]).toMatchObject({ name: "greeting", description: "A friendly word", mimeType: "text/plain" });
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toMatchObject([
      { uriTemplate: "careless://{what}", name: "odd" },
      { uriTemplate: "fixture://orders/{region}/{id}", name: "order", description: "One order" },
    ]);
    expect((await client.readResource({ uri: "fixture://greeting" }))["contents"]).toMatchObject([
      { uri: "fixture://greeting", mimeType: "text/plain", text: "hello" },
    ]);
    expect((await client.readResource({ uri: "fixture://pixel" }))["contents"]).toMatchObject([
      { mimeType: "image/png", blob: expect.stringMatching(/^iVBOR/) },
    ]);
    const order = await client.readResource({ uri: "fixture://orders/emea/a%20b" });
    expect(JSON.parse(order["contents"][0].text)).toEqual({ region: "emea", id: "a b" });
  });

  test("lists and gets prompts, with arguments", async () => {
    const { prompts } = (await client.listPrompts()) as { prompts: Loose[] };
    expect(prompts.map(({ name }) => name)).toEqual(["hello", "odd_prompt", "review"]);
    expect(prompts[2]).toMatchObject({
      arguments: [
        { name: "code", description: "The code", required: true },
        { name: "language", description: "Its language", required: false },
      ],
    });
    const { messages } = await client.getPrompt({ name: "review", arguments: { code: "1+1", language: "python" } });
    expect(messages).toMatchObject([{ role: "user", content: { type: "text", text: "Review this python: 1+1" } }]);
    await expect(client.getPrompt({ name: "review", arguments: {} })).rejects.toMatchObject({ code: -32602 });
  });

  test("completes arguments of prompts and templates", async () => {
    const language = await client.complete({
      ref: { type: "ref/prompt", name: "review" },
      argument: { name: "language", value: "py" },
    });
    expect(language["completion"]).toEqual({ values: ["python"], total: 1, hasMore: false });
    const ref = { type: "ref/resource", uri: "fixture://orders/{region}/{id}" };
    const region = await client.complete({ ref, argument: { name: "region", value: "a" } });
    expect(region["completion"].values).toEqual(["apac", "americas"]);
    if (LEGACY.slice(0, 2).includes(door.version)) return;
    const id = await client.complete({
      ref,
      argument: { name: "id", value: "7" },
      context: { arguments: { region: "emea" } },
    });
    expect(id["completion"].values).toEqual(["71", "72"]);
  });

  test("pings, where the revision has a ping", async () => {
    expect(isModern ? {} : await client.ping()).toEqual({});
  });

  test("gets errors with code and data", async () => {
    await expect(call("nobody")).rejects.toMatchObject({
      code: isModern ? -32602 : -32001,
      data: expectedData("tool_not_found"),
    });
    await expect(client.readResource({ uri: "fixture://nothing" })).rejects.toMatchObject({
      // The v2 client makes an error of its own of -32002 and keeps only the URI.
      data: door.client === "v2" && !isModern ? { uri: "fixture://nothing" } : expectedData("resource_not_found"),
    });
  });

  test("gets progress while the call runs", async () => {
    const label = nameOf(door, "progress");
    const seen: Progress[] = [];
    const pending = client.callTool(
      { name: "hold", arguments: { label, progress: true } },
      { onprogress: (progress) => seen.push(progress) },
    );
    // The clients lose progress that comes in one chunk with the answer, so the answer waits for it.
    await until(
      () => seen.length,
      (count) => count === 1,
    );
    await call("release", { label });
    expect((await pending)["content"][0].text).toBe(`released ${label}`);
    expect(seen).toMatchObject([{ progress: 1, total: 2 }]);
  });

  test("cancels: the handler sees it", async () => {
    const label = nameOf(door, "cancel");
    const cancel = new AbortController();
    const pending = client.callTool({ name: "hold", arguments: { label } }, { signal: cancel.signal });
    const observe = async (): Promise<Loose> => JSON.parse(String(await firstText("observe", { label })));
    await until(observe, ({ started }) => started === true);
    cancel.abort();
    await expect(pending).rejects.toThrow(/abort|cancel/i);
    expect(await until(observe, ({ aborted }) => aborted === true)).toMatchObject({ finished: false });
  });

  test("gets log messages of the level it asked for", async () => {
    // Since 2026-07-28 the level is part of each request; see http-modern.test.ts.
    if (isModern) return;
    await client.setLoggingLevel("warning");
    await call("log_lines");
    const logs = (): unknown[] =>
      client.notifications
        .filter(({ method }) => method === "notifications/message")
        .map(({ params }) => [params["level"], params["logger"], params["data"]]);
    await until(logs, (lines) => lines.length >= 2);
    expect(logs()).toEqual([
      ["warning", "fixture", { said: "warning" }],
      ["error", "fixture", { said: "error" }],
    ]);
  });

  test("hears of changed lists and of updates of watched resources", async () => {
    const has = (method: string) => () => client.notifications.some((note) => note.method === method);
    const subscription = isModern
      ? await (client as unknown as { listen(filter: Loose): Promise<{ close(): Promise<void> }> }).listen({
          toolsListChanged: true,
          promptsListChanged: true,
          resourcesListChanged: true,
          resourceSubscriptions: ["fixture://counter"],
        })
      : await client.subscribeResource({ uri: "fixture://counter" });
    for (const list of ["tools", "resources", "prompts"]) await call("announce", { list });
    await call("bump");
    for (const list of ["tools", "resources", "prompts"])
      await until(has(`notifications/${list}/list_changed`), Boolean);
    await until(has("notifications/resources/updated"), Boolean);
    const updated = client.notifications.find(({ method }) => method === "notifications/resources/updated");
    expect(updated?.params).toMatchObject({ uri: "fixture://counter" });
    if (isModern) await (subscription as { close(): Promise<void> }).close();
  });

  test("is asked: the person and the model", async () => {
    expect(await firstText("ask_model", { prompt: "meaning?" })).toBe("test-model said forty-two");
    if (door.client === "1.0") return;
    expect(await firstText("ask_name")).toBe("hello Ada");
    expect(await firstText("ask_both")).toBe("accept and test-model");
    expect(await firstText("ask_with_default")).toBe("hello Ada");
  });

  test("[004-R5.7] a long call does not hold up the others", async () => {
    const label = nameOf(door, "long");
    const held = firstText("hold", { label });
    await until(
      async () => JSON.parse(String(await firstText("observe", { label }))) as Loose,
      ({ started }) => started === true,
    );
    expect(await firstText("echo", { text: "quick" })).toBe("quick");
    await call("release", { label });
    expect(await held).toBe(`released ${label}`);
  });
});

/** Held calls are known by name, and one HTTP server serves many clients. */
function nameOf({ client, transport, version, mode }: Door, what: string): string {
  return [what, client, transport, version, JSON.stringify(mode)].join("-");
}

const TOOLS = [
  "add",
  "announce",
  "ask_both",
  "ask_model",
  "ask_name",
  "ask_with_default",
  "break_own_schema",
  "bump",
  "come_back",
  "count",
  "dawdle",
  "echo",
  "embedded",
  "fail",
  "fail_as",
  "heard",
  "hold",
  "job",
  "late_words",
  "link",
  "list",
  "log_lines",
  "observe",
  "only_as_task",
  "picture",
  "refuse",
  "release",
  "sound",
  "stray",
  "talkative",
  "typed",
  "who_am_i",
  "writes_to_stdout",
];
