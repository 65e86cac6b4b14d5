/**
 * Runs inside the virtual machine, once as root and once as an ordinary user with a systemd of his own: a real client,
 * the real server, and limits that only cgroup version 2 can keep. Prints one line of JSON for each fact.
 */
import { execFileSync } from "node:child_process";
import { type Dirent, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const SERVER = "/job/dist/main.js";
const GROUPS = "/sys/fs/cgroup";
const HOG = "chunks = []\nfor _ in range(60):\n    chunks.append(bytearray(b'x' * (32 << 20)))\nprint('took it all')";
const BUSY = "for i in 1 2 3; do timeout 2 sh -c 'while :; do :; done' & done; wait; true";
const CROWD = `import os, time
children = []
try:
    while len(children) < 600:
        child = os.fork()
        if child == 0:
            time.sleep(1000)
            os._exit(0)
        children.append(child)
except OSError:
    pass
print(len(children))
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)`;

const who = process.getuid?.() === 0 ? "root" : "user";

function report(fact: string, value: unknown): void {
  process.stdout.write(`${JSON.stringify({ who, fact, value })}\n`);
}

/** Groups of others come and go during the walk. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    // The second: it was removed between being opened and being read.
    if (isErrnoException(error) && (error.code === "ENOENT" || error.code === "ENODEV")) return [];
    throw error;
  }
}

function isErrnoException(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error;
}

/** Folders of the hierarchy that are ours. */
function ownGroups(folder = GROUPS): string[] {
  return entriesOf(folder).flatMap((entry) => {
    if (!entry.isDirectory()) return [];
    const path = join(folder, entry.name);
    return entry.name.startsWith("owl") ? [path, ...ownGroups(path)] : ownGroups(path);
  });
}

function cellGroup(): string {
  const found = ownGroups().find((path) => /\/owl-[0-9a-f]{20}$/.test(path));
  if (found === undefined) throw new Error(`no group of a sandbox in ${JSON.stringify(ownGroups())}`);
  return found;
}

function field(file: string, name: string): number {
  const line = readFileSync(file, "utf8")
    .split("\n")
    .find((each) => each.startsWith(`${name} `));
  return Number(line?.split(" ")[1]);
}

async function connect(): Promise<{ client: Client; pid: number }> {
  const home = who === "root" ? "/root" : "/home/ada";
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, SANDBOX_ROOT: join(home, "owlclaw-data") };
  const args = [SERVER, "mcp-server", "start", "--transport", "stdio", "--set", "sandbox.pool.size=0"];
  // Only root has disks for workspaces; the other limits are kept for a user all the same.
  const accepted = who === "root" ? env : { ...env, MCP_SERVER_SANDBOX_LIMITS: "best-effort" };
  const transport = new StdioClientTransport({ command: process.execPath, args, env: accepted, stderr: "inherit" });
  const client = new Client({ name: "vm", version: "1" });
  await client.connect(transport, { timeout: 280_000 });
  return { client, pid: transport.pid ?? 0 };
}

/** A client that closes its line kills a server that takes seconds to end: this one has the time it needs. */
async function ended({ client, pid }: Awaited<ReturnType<typeof connect>>): Promise<void> {
  process.kill(pid, "SIGTERM");
  while (existsSync(`/proc/${pid}`)) await delay(100);
  await client.close();
}

async function call(client: Client, name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const result = await client.callTool({ name, arguments: args }, { timeout: 280_000 });
  const [block] = result.content;
  const structured = result.structuredContent;
  return {
    isError: result.isError === true,
    text: block?.type === "text" ? block.text : "",
    ...(typeof structured === "object" ? structured : {}),
  };
}

async function limits(client: Client): Promise<void> {
  report("version", statSync(join(GROUPS, "cgroup.controllers")).isFile() ? 2 : 1);
  report("first result", (await call(client, "code_run", { code: "print(6*7)" }))["stdout"]);
  const group = cellGroup();
  report("group", group);
  report("limits", {
    memory: readFileSync(join(group, "memory.max"), "utf8").trim(),
    cpu: readFileSync(join(group, "cpu.max"), "utf8").trim(),
    pids: readFileSync(join(group, "pids.max"), "utf8").trim(),
  });
  await call(client, "shell_exec", { command: BUSY });
  report("throttled", field(join(group, "cpu.stat"), "nr_throttled"));
  report("crowd", Number((await call(client, "code_run", { code: CROWD, timeout_seconds: 240 }))["stdout"]));
  report("refused forks", field(join(group, "pids.events"), "max"));
  // A busy machine gives it memory slowly, and a time-out is not what is to be seen.
  const hog = await call(client, "code_run", { code: HOG, timeout_seconds: 240 });
  report("hog", { isError: hog["isError"], text: String(hog["text"]).slice(0, 300) });
  report("ended for memory", field(join(group, "memory.events"), "oom_kill"));
  report("after the hog", (await call(client, "code_run", { code: "print('alive')" }))["stdout"]);
}

const first = await connect();
await limits(first.client);
process.kill(first.pid, "SIGKILL");
await first.client.close();
const second = await connect();
report("after kill -9", (await call(second.client, "code_run", { code: "print('again')" }))["stdout"]);
await ended(second);
report(
  "groups left",
  ownGroups().filter((path) => /owl-[0-9a-f]{20}/.test(path)),
);
report(
  "processes left",
  execFileSync("ps", ["-eo", "comm"], { encoding: "utf8" })
    .split("\n")
    .filter((name) => name === "bwrap"),
);
report("done", true);
