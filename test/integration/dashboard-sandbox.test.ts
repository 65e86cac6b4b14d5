import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, PageStream, token } from "../escape/dashboard-lab.ts";

let server: Server;
let origin: string;
let ada: Client;
let root: PageOperator;

beforeAll(async () => {
  server = new Server(makePlace(), { ...AUTH, sandbox: { network: { allow: ["allowed.example"] } } });
  origin = new URL(await server.url()).origin;
  ada = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  root = await PageOperator.byToken(origin, "root");
});

afterAll(() => server.stop());

interface Made {
  readonly sessionId: string;
  readonly name: string;
}

async function newSandbox(): Promise<Made> {
  const { structuredContent } = await call(ada, "sandbox_create");
  const { sandboxes } = (await root.get("now")).json;
  return { sessionId: String(structuredContent?.["session_id"]), name: sandboxes.at(-1).id };
}

function shell({ sessionId }: Made, command: string): ReturnType<typeof call> {
  return call(ada, "shell_exec", { command, session_id: sessionId });
}

async function acts(name: string): Promise<string[]> {
  const { rows } = (await root.get(`ledger?kind=admin&tool=operator.${name}`)).json;
  return rows.map(({ client }: { client: string }) => client);
}

describe("what happens in a sandbox", () => {
  test("is told as it comes: commands, output, cells with their plots, files, refused hosts", async () => {
    const made = await newSandbox();
    const stream = await PageStream.open(root, `sandboxes/${made.name}/activity`);
    const running = shell(made, "echo one; until [ -e off ]; do sleep 0.05; done; echo two >&2");
    const printed = await stream.find(({ data }) => data.stream === "stdout");
    expect(printed.data).toMatchObject({ kind: "shell", text: "one\n", call: expect.stringMatching(/^[0-9a-f]{32}$/) });
    expect(stream.events[0]?.data).toMatchObject({
      kind: "shell",
      tool: "shell_exec",
      by: "ada",
      text: /^\$ echo one/,
    });
    await shell(made, "touch off");
    await running;
    await stream.find(({ data }) => data.stream === "stderr" && data.text === "two\n");
    await call(ada, "code_run", { code: "print('x')\n6*7", session_id: made.sessionId });
    const { data: cell } = await stream.find(({ data }) => data.cell?.result !== undefined);
    expect(cell).toMatchObject({ kind: "code", cell: { code: "print('x')\n6*7", language: "python", result: "42" } });
    await shell(made, "echo at once");
    await stream.find(({ data }) => data.stream === "stdout" && data.text === "at once\n");
    await call(ada, "file_write", { path: "a.txt", content: "x", session_id: made.sessionId });
    await stream.find(({ data }) => data.kind === "file" && data.text === "file_write a.txt");
    await shell(made, "curl -sS -m 5 http://refused.example/ || true");
    const { data: attempt } = await stream.find(({ data }) => data.kind === "network");
    expect(attempt.network).toMatchObject({ host: "refused.example", port: 80, decision: "deny" });
    stream.close();
    const again = await PageStream.open(root, `sandboxes/${made.name}/activity`);
    await again.find(({ data }) => data.seq === attempt.seq);
    expect(again.events.slice(0, stream.events.length)).toEqual(stream.events);
    again.close();
  });

  test("has its files shown, read, brought in and out, and nothing outside of it", async () => {
    const made = await newSandbox();
    const at = (what: string, path: string): string =>
      `sandboxes/${made.name}/${what}?path=${encodeURIComponent(path)}`;
    await shell(
      made,
      "mkdir -p d; printf 'hé\\n' > d/t.txt; head -c 300000 /dev/urandom > big.bin; ln -s /etc/passwd out",
    );
    const { entries } = (await root.get(`sandboxes/${made.name}/files`)).json;
    expect(entries).toEqual([
      expect.objectContaining({ name: "big.bin", kind: "file", sizeBytes: 300_000 }),
      expect.objectContaining({ name: "d", kind: "directory" }),
      expect.objectContaining({ name: "out", kind: "link" }),
    ]);
    expect((await root.get(at("text", "d/t.txt"))).json).toMatchObject({ text: "hé\n", truncated: false });
    expect((await root.get(at("text", "big.bin"))).json).not.toHaveProperty("text");
    const file = await root.get(at("file", "d/t.txt"));
    expect([file.text, file.headers["content-type"], file.headers["x-content-type-options"]]).toEqual([
      "hé\n",
      "application/octet-stream",
      "nosniff",
    ]);
    expect(file.headers["content-disposition"]).toMatch(/^attachment; filename="t.txt"/);
    const put = await root.send(at("file", "d/new.html"), { method: "PUT", body: "<b>in</b>" });
    expect(put.json).toMatchObject({ sizeBytes: 9, isNew: true });
    const { structuredContent } = await shell(made, "cat d/new.html");
    expect(structuredContent).toMatchObject({ stdout: "<b>in</b>" });
    for (const path of ["../../etc/passwd", "/etc/passwd", "out", "d/../../x", "/proc/self/environ", "a\0b", ""]) {
      const answers = [await root.get(at("file", path)), await root.get(at("text", path))];
      for (const { status, text } of answers) expect([status >= 400, text.includes("root:")]).toEqual([true, false]);
      expect((await root.send(at("file", path), { method: "PUT", body: "x" })).status).toBeGreaterThanOrEqual(400);
    }
    const { changes } = (await root.get(`sandboxes/${made.name}/changes`)).json;
    expect(changes).toContainEqual({ path: "d/t.txt", change: "added", after: "hé\n" });
    expect(await acts("file_write")).toContain("root");
    expect(await acts("changes_read")).toEqual(["root"]);
    expect(await acts("file_read")).toContain("root");
  });

  test("goes on longer, stops or ends for good as the operator says, on the record", async () => {
    const made = await newSandbox();
    const before = (await root.get(`sandboxes/${made.name}`)).json;
    expect(before).toMatchObject({ owner: "ada", limits: { cpus: 1 }, networkAllow: ["allowed.example"] });
    const { expiresAt } = (await root.post(`sandboxes/${made.name}/extend`, { minutes: 600 })).json;
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.parse(before.expiresAt) + 500 * 60_000);
    expect((await root.post(`sandboxes/${made.name}/extend`, { minutes: -1 })).status).toBe(400);
    const stream = await PageStream.open(root, `sandboxes/${made.name}/activity`);
    expect((await root.post(`sandboxes/${made.name}/stop`)).json).toEqual({ ended: true });
    await stream.ended();
    expect(stream.events.at(-1)?.data).toMatchObject({ kind: "state", text: "ended: stopped by the operator" });
    const { structuredContent } = await shell(made, "ls");
    expect(structuredContent).toMatchObject({
      session_created: true,
      note: expect.stringContaining("stopped by the operator"),
    });
    const renewed = (await root.get("now")).json.sandboxes.at(-1).id;
    await root.post(`sandboxes/${renewed}/destroy`);
    expect((await shell(made, "ls")).isError).toBe(true);
    expect((await root.get(`sandboxes/${renewed}`)).status).toBe(404);
    expect([await acts("extend"), await acts("stop"), await acts("destroy")]).toEqual([["root"], ["root"], ["root"]]);
  });
});
