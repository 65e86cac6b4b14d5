import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, PageStream, token } from "../escape/dashboard-lab.ts";
import { until } from "./harness.ts";

let server: Server;
let ada: Client;
let root: PageOperator;
let other: PageOperator;
let sessionId: string;
let name: string;

beforeAll(async () => {
  server = new Server(makePlace(), AUTH);
  const { origin } = new URL(await server.url());
  ada = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  [root, other] = [await PageOperator.byToken(origin, "root"), await PageOperator.byToken(origin, "other")];
  const { structuredContent } = await call(ada, "sandbox_create");
  sessionId = String(structuredContent?.["session_id"]);
  name = (await root.get("now")).json.sandboxes[0].id;
});

afterAll(() => server.stop());

const at = (what: string): string => `sandboxes/${name}/${what}`;

function shownIn(stream: PageStream): string {
  return stream.events.map(({ data }) => (data.kind === "terminal" ? data.text : "")).join("");
}

async function shows(stream: PageStream, text: string): Promise<void> {
  await until(
    () => shownIn(stream),
    (shown) => shown.includes(text),
  );
}

describe("an operator who steps in", () => {
  test("has a shell on a terminal; the agent is told to wait, and goes on when it is given back", async () => {
    expect((await root.post(at("terminal"), { input: "id\r" })).status).toBe(403);
    expect((await root.post(at("takeover"))).json).toEqual({ takenOverBy: "root" });
    expect((await root.get(`sandboxes/${name}`)).json.takenOverBy).toBe("root");
    for (const [tool, args] of [
      ["shell_exec", { command: "ls" }],
      ["file_read", { path: "x" }],
      ["sandbox_destroy", {}],
    ] as const) {
      const refused = await call(ada, tool, { ...args, session_id: sessionId });
      expect([refused.isError, refused.content[0]?.text]).toEqual([
        true,
        expect.stringContaining("operator works in this sandbox"),
      ]);
    }
    const stream = await PageStream.open(root, at("activity"));
    await root.post(at("terminal"), { resize: { cols: 101, rows: 33 } });
    await root.post(at("terminal"), { input: "stty size; test -t 0 && echo it is a $((40+2))-terminal\r" });
    await shows(stream, "33 101");
    await shows(stream, "it is a 42-terminal");
    await root.post(at("terminal"), { resize: { cols: 55, rows: 22 } });
    await root.post(at("terminal"), { input: "stty si" });
    await root.post(at("terminal"), { input: "ze\rcat\r" });
    await shows(stream, "22 55");
    await root.post(at("terminal"), { input: "\u0003" });
    await until(
      () => shownIn(stream),
      (shown) => /\^C[^]*\$ $/.test(shown),
    );
    await root.post(at("terminal"), { input: "echo was here > mark\r" });
    expect((await other.post(at("takeover"))).status).toBe(409);
    expect((await other.post(at("terminal"), { input: "x" })).status).toBe(403);
    await until(
      () => root.get(`${at("text")}?path=mark`),
      ({ json }) => json.text === "was here\n",
    );
    await root.post(at("giveback"));
    const { structuredContent } = await call(ada, "shell_exec", {
      command: "cat mark",
      session_id: sessionId,
    });
    expect(structuredContent).toMatchObject({ stdout: expect.stringMatching(/^was here\n/) });
    expect((await root.post(at("terminal"), { input: "x" })).status).toBe(403);
    const { rows } = (await root.get("ledger?kind=admin&client=root&limit=100")).json;
    const beside = ["operator.login", "operator.ledger_read"];
    const names: readonly string[] = rows.map(({ tool }: { tool: string }) => tool);
    const acts = names.filter((name) => !beside.includes(name)).toReversed();
    expect([acts[0], acts.at(-1)]).toEqual(["operator.takeover", "operator.giveback"]);
    const lines = (await root.get("ledger?tool=operator.terminal&text=stty%20size")).json.rows;
    expect(lines.length).toBeGreaterThanOrEqual(2);
    stream.close();
  });

  test("is one alone, however many ask at once", async () => {
    const answers = await Promise.all([root, other, root, other].map((each) => each.post(at("takeover"))));
    const [winner, loser] = answers[0]?.status === 200 ? [root, other] : [other, root];
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 409, 409]);
    expect((await loser.post(at("terminal"), { input: "x" })).status).toBe(403);
    expect((await winner.post(at("terminal"), { input: "x" })).status).toBe(200);
    await winner.post(at("giveback"));
  });

  test("ends a shell with what it started when the sandbox is given back", async () => {
    await root.post(at("takeover"));
    const stream = await PageStream.open(root, at("activity"));
    await root.post(at("terminal"), { input: "sleep 4711\r" });
    const sleeping = async (): Promise<boolean> =>
      (await root.get(at("processes"))).json.processes.some(({ command }: { command: string }) =>
        command.includes("sleep 4711"),
      );
    await until(sleeping, (isThere) => isThere);
    await other.post(at("giveback"));
    await until(sleeping, (isThere) => !isThere);
    expect((await root.get(`sandboxes/${name}`)).json).not.toHaveProperty("takenOverBy");
    stream.close();
  });
});

describe("processes", () => {
  test("are listed with what they use, and ended one by one, but not the one that keeps the sandbox alive", async () => {
    const { structuredContent } = await call(ada, "shell_exec", {
      command: "exec sleep 815",
      background: true,
      session_id: sessionId,
    });
    expect(structuredContent).toMatchObject({ status: "running" });
    const find = async (): Promise<Record<string, unknown> | undefined> =>
      (await root.get(at("processes"))).json.processes.find(
        ({ command }: { command: string }) => command === "sleep 815",
      );
    const found = await until(find, (process) => process !== undefined);
    expect(found).toMatchObject({ memoryBytes: expect.any(Number), startedAt: expect.stringMatching(/Z$/) });
    expect((await root.post(at(`processes/${String(found?.["pid"])}/kill`))).status).toBe(200);
    await until(find, (process) => process === undefined);
    expect((await root.post(at("processes/1/kill"))).status).toBe(422);
    expect((await root.post(at("processes/-1/kill"))).status).toBe(400);
    expect((await root.post(at("processes/0/kill"))).status).toBe(400);
    expect((await call(ada, "shell_exec", { command: "true", session_id: sessionId })).isError).not.toBe(true);
  });
});
