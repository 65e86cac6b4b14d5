/**
 * Runs inside the virtual machine, as root: installs the systemd unit as its head says, starts it, has it run code with
 * every limit, reloads and stops it. Prints one line of JSON for each fact.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const [job = "", port = ""] = process.argv.slice(2);
const UNIT = "owlclaw.service";
const UNIT_FILE = `/etc/systemd/system/${UNIT}`;
const GROUPS = `/sys/fs/cgroup/system.slice/${UNIT}`;
const ORIGIN = `http://127.0.0.1:${port}`;
const DEADLINE_MS = 600_000;

function report(fact: string, value: unknown): void {
  process.stdout.write(`${JSON.stringify({ who: "unit", fact, value })}\n`);
}

function said(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
}

/** What the head of the unit tells, with the packed server in the place of npm's. */
function install(): void {
  symlinkSync(join(job, "node"), "/usr/local/bin/node");
  symlinkSync(join(job, "dist/main.js"), "/usr/local/bin/owlclaw");
  mkdirSync("/etc/sysusers.d", { recursive: true });
  writeFileSync("/etc/sysusers.d/owlclaw.conf", "u owlclaw - - /var/lib/owlclaw /usr/sbin/nologin\n");
  said("systemd-sysusers");
  mkdirSync("/etc/owlclaw");
  const config = { http: { host: "127.0.0.1", port: Number(port) }, sandbox: { pool: { size: 0 } } };
  writeFileSync("/etc/owlclaw/mcp-server.yaml", JSON.stringify(config), { mode: 0o644 });
  copyFileSync(join(job, UNIT), UNIT_FILE);
  said("systemctl", "daemon-reload");
}

async function until<Value>(look: () => Promise<Value | undefined> | Value | undefined): Promise<Value> {
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end; await delay(500)) {
    const found = await look();
    if (found !== undefined) return found;
    if (said("systemctl", "show", UNIT, "--property=ActiveState", "--value") === "failed") break;
  }
  throw new Error(`it did not come: ${journal().slice(-4000)}`);
}

function journal(): string {
  return said("journalctl", "--unit", UNIT, "--no-pager", "--output=cat");
}

async function codeRun(code: string): Promise<Record<string, unknown>> {
  const answer = await fetch(`${ORIGIN}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "code_run", arguments: { code, timeout_seconds: 200 } },
    }),
  });
  return (await answer.json()) as Record<string, unknown>;
}

function cellGroup(folder = GROUPS): string | undefined {
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const own = folders.find(({ name }) => /^owl-[0-9a-f]{20}$/.test(name));
  if (own !== undefined) return join(folder, own.name);
  return folders.map(({ name }) => cellGroup(join(folder, name))).find((found) => found !== undefined);
}

install();
report("verify", said("systemd-analyze", "verify", UNIT_FILE));
said("systemctl", "start", UNIT);
await until(() => (journal().includes('"message":"server started"') ? true : undefined));
// A look may time out in a machine as slow as this one; the next one does not.
report("ready", await until(async () => ((await fetch(`${ORIGIN}/health/ready`)).ok ? true : undefined)));
const pid = said("systemctl", "show", UNIT, "--property=MainPID", "--value");
report("user", said("id", "--name", "--user", String(statSync(`/proc/${pid}`).uid)));
report("result", await codeRun("print(6*7)"));
const group = cellGroup();
if (group === undefined) throw new Error(`no group of a sandbox: ${journal().slice(-6000)}`);
report("group", group);
report("limits", {
  memory: readFileSync(join(group, "memory.max"), "utf8").trim(),
  cpu: readFileSync(join(group, "cpu.max"), "utf8").trim(),
  pids: readFileSync(join(group, "pids.max"), "utf8").trim(),
});
said("systemctl", "reload", UNIT);
report("reloaded", await until(() => (journal().includes('"message":"reloaded"') ? true : undefined)));
said("systemctl", "stop", UNIT);
report("state", said("systemctl", "show", UNIT, "--property=ActiveState,Result,ExecMainStatus"));
report(
  "processes left",
  said("ps", "-eo", "user,comm")
    .split("\n")
    .filter((line) => line.startsWith("owlclaw ")),
);
report("done", true);
