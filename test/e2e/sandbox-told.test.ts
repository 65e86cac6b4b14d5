import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Client } from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { call, connectHttp, connectStdio, makePlace, readText, Server } from "./sandbox-client.ts";

const TOLD = ["code_run", "shell_exec", "sandbox_create", "execute_code", "execute_command"];
const DIALECTS = { tools: { dialects: ["native", "microsandbox"] } };

async function descriptions(client: Client): Promise<Record<string, string>> {
  const { tools } = await client.listTools();
  const told = tools.filter(({ name }) => TOLD.includes(name));
  return Object.fromEntries(told.map(({ name, description = "" }) => [name, description]));
}

describe("what a model is told about the network", () => {
  test("without any, each tool that runs something says so, and so does the hint when a name is not found", async () => {
    const client = await connectStdio(makePlace(), DIALECTS);
    const found = await descriptions(client);
    expect(Object.keys(found).toSorted()).toEqual(TOLD.toSorted());
    for (const description of Object.values(found)) expect(description).toContain("no network");

    const failing = {
      shell_exec: { command: "curl -sS http://pkg.example/" },
      code_run: { code: "import urllib.request as u; u.urlopen('http://pkg.example/')" },
    };
    for (const [name, args] of Object.entries(failing)) {
      const result = await call(client, name, args);
      expect([result.isError, readText(result).hint]).toEqual([true, expect.stringContaining("no network")]);
    }
    const fetched = await call(client, "code_run", { language: "node", code: "await fetch('http://pkg.example/')" });
    expect(readText(fetched).hint).toContain("no network");
    const dialect = await call(client, "execute_command", failing.shell_exec);
    expect(dialect.content.at(-1)?.text).toMatch(/\nhint: .*no network/);
  });

  test("a failure that has nothing to do with names gets no word about it", async () => {
    const client = await connectStdio(makePlace());
    const { hint } = readText(await call(client, "shell_exec", { command: "ls /nowhere" }));
    expect(hint).not.toContain("network");
  });

  test("with hosts, they are named, and those of other templates too", async () => {
    const network = { allow: ["example.com", "*.example.org:8443"], templates: { node: ["npm.example"] } };
    const found = await descriptions(await connectStdio(makePlace(), { ...DIALECTS, sandbox: { network } }));
    for (const description of Object.values(found)) {
      expect(description).toContain("example.com, *.example.org:8443");
      expect(description).not.toContain("no network");
    }
    expect(found["sandbox_create"]).toContain("node: npm.example");
  });
});

test("a rule for 127.0.0.1 opens a service of the host to programs that ask the proxy; servers inside stay reachable", async () => {
  const service = createServer((_, response) => response.end("from the host"));
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  onTestFinished(() => void service.close());
  const { port } = service.address() as AddressInfo;
  const network = { allow: [`127.0.0.1:${port}`] };
  const client = await connectStdio(makePlace(), { sandbox: { network } });
  expect((await descriptions(client))["shell_exec"]).toContain("curl --noproxy ''");
  const sh = async (command: string): Promise<unknown> =>
    (await call(client, "shell_exec", { command })).structuredContent?.["stdout"];
  expect(await sh(`curl -sS --noproxy '' http://127.0.0.1:${port}/`)).toBe("from the host");
  const inside = "echo from inside > a; python3 -m http.server 8000 > /dev/null 2>&1 &";
  const fetchIt = "curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8000/a";
  expect(await sh(`${inside} ${fetchIt}`)).toBe("from inside\n");
});

describe("arguments that used to be taken without a word", () => {
  test("a reserved variable is refused by its name, and so is what is no name", async () => {
    const client = await connectStdio(makePlace());
    const refused = async (env: Record<string, string>): Promise<string> =>
      (await call(client, "sandbox_create", { env })).content[0]?.text ?? "";
    expect(await refused({ PATH: "/x" })).toMatch(/env\.PATH: .*reserved/);
    expect(await refused({ "a b": "x" })).toMatch(/env\.a b: .*no name for a variable/);
  });

  test("execute_command passes args on as they are", async () => {
    const client = await connectStdio(makePlace(), DIALECTS);
    const args = ["a b", "$HOME", "it's", "", "-n", "*", "`id`", "é\n"];
    const result = await call(client, "execute_command", { command: "printf '<%s>'", args });
    expect(result.content[0]?.text).toBe(args.map((arg) => `<${arg}>`).join(""));
    const plain = await call(client, "execute_command", { command: "echo one | tr a-z A-Z", args: [] });
    expect(plain.content[0]?.text).toBe("ONE\n");
    for (const bad of ["-l", [1], ["a\0b"]]) {
      const refused = await call(client, "execute_command", { command: "ls", args: bad });
      expect([refused.isError, refused.content[0]?.text]).toEqual([true, expect.stringContaining("args")]);
    }
  });
});

test("HEAD on a file gives what GET gives, without the file", async () => {
  const server = new Server(makePlace(), {});
  const url = await server.url();
  const client = await connectHttp(url);
  const { structuredContent } = await call(client, "file_write", { path: "a.txt", content: "0123456789" });
  const there = new URL(`/api/sandboxes/${String(structuredContent?.["session_id"])}/files/`, url);
  const ask = async (path: string, method: string, headers: Record<string, string> = {}) => {
    const response = await fetch(new URL(path, there), { method, headers });
    // The client asks to close the connection after HEAD, and less is left after each call; all else must be the same.
    const own = ["x-trace-id", "date", "connection", "keep-alive", "ratelimit"];
    const about = [...response.headers].filter(([name]) => !own.includes(name));
    return { status: response.status, headers: about, text: await response.text() };
  };
  const whole = await ask("a.txt", "GET");
  expect(whole).toMatchObject({ status: 200, text: "0123456789" });
  expect(await ask("a.txt", "HEAD")).toEqual({ ...whole, text: "" });
  const range = { range: "bytes=2-4" };
  expect(await ask("a.txt", "HEAD", range)).toEqual({ ...(await ask("a.txt", "GET", range)), text: "" });
  expect(await ask("none.txt", "HEAD")).toMatchObject({ status: 404, text: "" });
  await server.stop();
});
