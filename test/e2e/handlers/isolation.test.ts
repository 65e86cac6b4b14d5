import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "../../integration/harness.ts";
import { plainCall } from "../../integration/http-client.ts";
import { text } from "../../integration/wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-isolated-"));
const secret = mkdtempSync(path.join(tmpdir(), "owlclaw-secret-"));
let server: HttpServer;

const SPY_TS = `
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { defineHandler, z } from "owlclaw";

export const look = defineHandler({
  name: "look_ts",
  description: "Reads a file",
  input: z.object({ path: z.string() }),
  run: ({ path }) => (existsSync(path) ? readFileSync(path, "utf8") : "nothing there"),
});
export const surroundings = defineHandler({
  name: "surroundings_ts",
  description: "Shows environment and processes",
  run: () => ({ env: process.env, processes: readdirSync("/proc").filter((name) => /^\\d+$/.test(name)).length }),
});
export const reach = defineHandler({
  name: "reach_ts",
  description: "Tries to connect",
  input: z.object({ port: z.number() }),
  run: ({ port }) =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve("connected"));
      socket.on("error", () => resolve("refused"));
    }),
});
export const work = defineHandler({
  name: "work_ts",
  description: "Works otherwise",
  input: z.object({ a: z.number() }),
  async run({ a }, context) {
    await context.sandbox.writeFile("note.txt", String(a));
    const { stdout } = await context.sandbox.exec("cat note.txt");
    const { value } = await context.sandbox.run("6 * 7");
    return { stdout, value, read: await context.sandbox.readFile("note.txt") };
  },
});
`;

const SPY_PY = `
import os, socket
from owlclaw import Context

def look_py(path: str) -> str:
    """Reads a file."""
    return open(path).read() if os.path.exists(path) else "nothing there"

def environment_py() -> list[str]:
    """Shows the names of its environment."""
    return sorted(os.environ)

def reach_py(port: int) -> str:
    """Tries to connect."""
    try:
        socket.create_connection(("127.0.0.1", port), 2)
        return "connected"
    except OSError:
        return "refused"

def work_py(a: int, context: Context) -> dict:
    """Works otherwise."""
    context.sandbox.write_file("note.txt", str(a))
    stdout = context.sandbox.exec("cat note.txt")["stdout"]
    return {"stdout": stdout, "value": context.sandbox.run("6 * 7")["value"], "read": context.sandbox.read_file("note.txt")}

async def work_later_py(context: Context) -> str:
    """Works otherwise, beside others."""
    return (await context.sandbox.run("6 * 7", timeout=20))["value"]

def flood_py() -> str:
    """Writes what is no message where messages go."""
    for fd in range(3, 20):
        try:
            os.write(fd, b"x" * 100)
        except OSError:
            pass
    return "written"
`;

beforeAll(async () => {
  writeFileSync(path.join(folder, "spy.ts"), SPY_TS);
  writeFileSync(path.join(folder, "spy.py"), SPY_PY);
  writeFileSync(path.join(secret, "secret.txt"), "the server's own");
  server = await startHttp({
    config: {
      sandbox: { root: path.join(secret, "data"), pool: { size: 0 }, limits: "best-effort" },
      handlers: { paths: [folder], isolation: "sandbox", watch: false },
    },
    env: { SHOP_PASSWORD: "open sesame" },
  });
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
  rmSync(secret, { recursive: true, force: true });
});

const call = async (name: string, args: Record<string, unknown> = {}) =>
  text((await plainCall(server.url, name, args)).body);

describe("handlers.isolation: sandbox", () => {
  test.each(["look_ts", "look_py"])("%s cannot read the server's files", async (name) => {
    expect(await call(name, { path: path.join(secret, "secret.txt") })).toBe("nothing there");
    expect(await call(name, { path: `/proc/${server.child.pid}/environ` })).toBe("nothing there");
    expect(await call(name, { path: `/handlers${folder}/spy.py` })).toContain("def look_py");
  });

  test("neither sees the server's environment", async () => {
    expect(await call("surroundings_ts")).not.toContain("sesame");
    expect(await call("environment_py")).not.toContain("SHOP_PASSWORD");
  });

  test.each(["reach_ts", "reach_py"])("%s has no network", async (name) => {
    expect(await call(name, { port: Number(new URL(server.url).port) })).toBe("refused");
  });

  test.each(["work_ts", "work_py"])("%s works otherwise, and has a sandbox to run things in", async (name) => {
    expect(JSON.parse((await call(name, { a: 5 })) ?? "{}")).toEqual({ stdout: "5", value: "42", read: "5" });
  });

  test("an async Python function awaits its sandbox", async () => {
    expect(await call("work_later_py")).toBe("42");
  });

  test("one that writes rubbish on the protocol's stream loses its sandbox, and the server goes on", async () => {
    const { body } = await plainCall(server.url, "flood_py");
    expect(body.error?.data).toMatchObject({ kind: "execution_error", retryable: true });
    expect(await call("look_py", { path: "/nowhere" })).toBe("nothing there");
  });
});
