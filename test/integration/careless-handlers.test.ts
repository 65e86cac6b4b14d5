import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "./harness.ts";
import { closeStreams, HttpSession, plain, plainCall } from "./http-client.ts";
import { StdioLine } from "./stdio-line.ts";
import { expectedData, text, WITH_QUOTA } from "./wire-messages.ts";

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp();
});

afterAll(async () => {
  closeStreams();
  await server.stop();
});

describe("a careless handler", () => {
  test("that talks on after its answer is not heard, and harms nobody", async () => {
    const session = await HttpSession.open(server.url, { capabilities: { elicitation: {} } });
    const rounds = 70;
    for (let round = 0; round < rounds; round++) {
      expect(text((await session.call("late_words", { label: String(round) })).body)).toBe("done");
    }
    const heard = async (): Promise<string[]> => JSON.parse(text((await plainCall(server.url, "heard")).body) ?? "[]");
    await until(heard, (outcomes) => outcomes.length >= rounds);
    expect(new Set(await heard())).toEqual(new Set(["refused"]));
    expect(text((await session.call("echo", { text: "fine" })).body)).toBe("fine");
    await session.delete();
  });

  test("that talks on after its answer over stdio is not heard either", async () => {
    const line = new StdioLine();
    await line.initialize("2025-11-25", { elicitation: {} });
    expect(text(await line.request("tools/call", { name: "late_words", arguments: { label: "x" } }))).toBe("done");
    const heard = await until(
      () => line.request("tools/call", { name: "heard" }),
      (answer) => text(answer) !== "[]",
    );
    expect(text(heard)).toBe('["refused"]');
    expect(line.received.filter(({ method }) => method !== undefined)).toEqual([]);
    await line.finish();
  });

  test("whose completer throws has failed, and the client's parameters are not blamed", async () => {
    const ref = { type: "ref/resource", uri: "careless://{what}" };
    const complete = async (value: string) =>
      (await plain(server.url, "completion/complete", { ref, argument: { name: "what", value } })).body;
    expect((await complete("throw")).error?.data).toEqual(
      expectedData("execution_error", { message: expect.stringContaining("no idea") }),
    );
    expect((await complete("odd")).error?.data).toEqual(expectedData("execution_error"));
    expect((await complete("")).result).toEqual({
      completion: { values: [], total: 0, hasMore: false },
      ...WITH_QUOTA,
    });
  });

  test.each(["nothing", "number"])("whose resource or prompt gives %s has failed", async (what) => {
    const read = await plain(server.url, "resources/read", { uri: `careless://${what}` });
    expect(read.body.error?.data).toEqual(expectedData("execution_error"));
    const got = await plain(server.url, "prompts/get", { name: "odd_prompt", arguments: { what } });
    expect(got.body.error?.data).toEqual(expectedData("execution_error"));
  });

  test("that leaves a failing promise behind does not take the server down, and is in the log", async () => {
    const own = await startHttp();
    expect(text((await plainCall(own.url, "stray")).body)).toBe("answered");
    await until(
      () => own.stderr.join("\n"),
      (log) => log.includes("left behind by a handler"),
    );
    expect(text((await plainCall(own.url, "echo", { text: "still here" })).body)).toBe("still here");
    await own.stop();
  });
});

describe("handler files that cannot be used", () => {
  test("are named in the log with the reason, and take no other with them", async () => {
    const broken = await startHttp({ handlers: "broken" });
    const { tools } = (await plain(broken.url, "tools/list")).body.result ?? {};
    expect(tools).toMatchObject([{ name: "good" }]);
    const read = (await plain(broken.url, "resources/read", { uri: "broken://jumpy" })).body.result;
    expect(read?.["contents"]).toMatchObject([{ text: "readable all the same" }]);
    const problems = broken.logs.filter(({ level }) => level === "error").map((line) => JSON.stringify(line));
    for (const fault of [
      /throws\.ts.*cannot be loaded/,
      /syntax\.ts/,
      /bad-tool\.ts.*not a name/,
      /jumpy.*cannot watch/,
    ]) {
      expect(problems.filter((line) => fault.test(line))).not.toEqual([]);
    }
    await broken.stop();
  });
});
