import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { call, startGoverned } from "../integration/governance-lab.ts";
import { startHttp } from "../integration/harness.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";

/** Another user of the machine at the port, or at the socket, of a server with auth off. */
const NOBODY = 65_534;
const run = promisify(execFile);

/** Runs as another user, from a folder that it may read. */
async function asNobody(script: string, ...args: readonly string[]): Promise<string> {
  const options = { uid: NOBODY, gid: NOBODY, cwd: "/", env: { PATH: process.env["PATH"] } };
  const { stdout } = await run("python3", ["-c", script, ...args], options);
  return stdout;
}

/** Prints the status of the answer to one POST. */
const POST = `
import http.client, sys
host, port, body = sys.argv[1], int(sys.argv[2]), sys.argv[3]
connection = http.client.HTTPConnection(host, port)
connection.request("POST", "/mcp", body, {"content-type": "application/json", "accept": "application/json, text/event-stream"})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
`;

/** Sends the request and is gone before it is answered, so that the kernel may have forgotten whose connection it was. */
const POST_AND_GO = `
import socket, struct, sys
host, port, body = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
head = b"POST /mcp HTTP/1.1\\r\\nhost: localhost\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body)
for how in ("close", "half", "reset") * 10:
    client = socket.create_connection((host, port))
    if how == "reset": client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(head + body)
    if how == "half": client.shutdown(socket.SHUT_WR)
    client.close()
`;

const GET = `
import http.client, sys
for path in sys.argv[3:]:
    connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
    connection.request("GET", path)
    print(connection.getresponse().status)
`;

const ECHO = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "echo", arguments: { text: "for nobody" } },
});

async function callsOf(root: string): Promise<number> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: root });
  const rows = await reader.list({ name: "echo" }, { limit: 100 });
  await reader.close();
  return rows.length;
}

describe.skipIf(process.getuid?.() !== 0)("a port on loopback (another user needs root to be tried)", () => {
  let server: Awaited<ReturnType<typeof startGoverned>>;
  let port = "";
  beforeAll(async () => {
    server = await startGoverned();
    port = new URL(server.url).port;
  });
  afterAll(() => server.stop());

  test.each(["127.0.0.1", "::ffff:127.0.0.1"])("serves no other user, by %s", async (host) => {
    expect(await asNobody(POST, host, port, ECHO)).toMatch(/^403 .*"reason":"other_user"/);
    expect(await callsOf(server.root)).toBe(0);
  });

  test("serves no other user, by ::1", async (context) => {
    if (networkInterfaces()["lo"]?.some(({ family }) => family === "IPv6") !== true)
      context.skip("no IPv6 on loopback here");
    const six = await startHttp({ config: { http: { host: "::1" }, sandbox: { enabled: false } } });
    try {
      expect(await asNobody(POST, "::1", new URL(six.url).port, ECHO)).toMatch(/^403 .*"reason":"other_user"/);
      expect((await call(six.url, "echo", { text: "own" })).body.result).toBeDefined();
    } finally {
      await six.stop();
    }
  });

  test("shows another user nothing but its health", async () => {
    const paths = ["/metrics", "/mcp", "/dashboard", "/api/stats", "/health", "/health/live"];
    const statuses = (await asNobody(GET, "127.0.0.1", port, ...paths)).trim().split("\n");
    expect(statuses).toEqual(["403", "403", "403", "403", "200", "200"]);
  });

  test("runs no call of another user who does not wait for the answer", async () => {
    await asNobody(POST_AND_GO, "127.0.0.1", port, ECHO);
    expect((await call(server.url, "echo", { text: "own" })).body.result).toBeDefined();
    expect(await callsOf(server.root)).toBe(1);
  });

  test("serves every user where http.allowOtherUsers says so", async () => {
    const open = await startHttp({ config: { http: { allowOtherUsers: true }, sandbox: { enabled: false } } });
    try {
      expect(await asNobody(POST, "127.0.0.1", new URL(open.url).port, ECHO)).toMatch(/^200 /);
    } finally {
      await open.stop();
    }
  });
});

describe("a Unix socket in place of a port", () => {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-socket-"));
  const path = join(folder, "owlclaw.sock");
  const options = { config: { http: { socket: path }, sandbox: { enabled: false } } };
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const ask = (): Promise<{ readonly stdout: string }> =>
    run("curl", [
      "--silent",
      "--unix-socket",
      path,
      "-H",
      "content-type: application/json",
      "-d",
      ECHO,
      "http://localhost/mcp",
    ]);

  test("serves the server's own user, and is that user's alone", async () => {
    const server = await startHttp(options);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(JSON.parse((await ask()).stdout)).toMatchObject({ result: { content: [{ text: "for nobody" }] } });
    await Promise.all(Array.from({ length: 20 }, ask));
    await server.stop();
    expect(() => statSync(path)).toThrow("ENOENT");
  });

  test("is taken over from a server that was killed, and not from one that runs", async () => {
    const killed = await startHttp(options);
    killed.child.kill("SIGKILL");
    await killed.exit();
    const server = await startHttp(options);
    await expect(startHttp(options)).rejects.toThrow("http.socket");
    expect(JSON.parse((await ask()).stdout)).toMatchObject({ result: {} });
    await server.stop();
  });

  test("replaces no file that is there", async () => {
    writeFileSync(path, "a file");
    await expect(startHttp(options)).rejects.toThrow("http.socket");
    expect(readFileSync(path, "utf8")).toBe("a file");
  });
});
