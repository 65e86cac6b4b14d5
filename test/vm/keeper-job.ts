/**
 * Keeps a server with microVMs or with bubblewrap, or both, and tells the test what it cannot see itself. Runs as root,
 * inside a virtual machine, or on the machine of the tests where that one boots microVMs itself.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { KeeperOrder, ServedRuntime } from "./keeper-order.ts";

const order = JSON.parse(process.argv[2] ?? "") as KeeperOrder;
const { canary, job, msb, place, volume, ports, site } = order;
const data = join(place, "data");
const log: string[] = [];
const servers = new Map<ServedRuntime, ChildProcess>();
const MSB = join(job, "node_modules/@superradcompany/microsandbox-linux-x64-gnu/bin/msb");
const MSB_ENV = { ...process.env, MSB_HOME: msb };

mkdirSync(volume, { recursive: true });
writeFileSync(join(volume, "secret.txt"), canary);
const LARGE = Buffer.alloc(1_000_000, "x");
createHttp((request, response) => {
  response.end(request.url === "/large.bin" ? LARGE : "hello from outside");
}).listen(80, site);

function writeConfig(runtime: ServedRuntime): string {
  const file = join(place, `${runtime}.json`);
  const config = {
    http: { host: "127.0.0.1", port: ports[runtime] },
    logging: { level: "info" },
    governance: { defaults: { callsPerMinute: 100_000, concurrency: 1000 } },
    sandbox: {
      root: runtime === "microsandbox" ? data : join(place, "other"),
      runtime,
      image: "owlclaw-sandbox",
      pool: { size: 0 },
      maxPerPrincipal: 50,
      volumes: [`${volume}:/workspace2`],
      network: { templates: { node: ["good.test", site] }, shareVolumes: true },
    },
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

async function startServer(runtime: ServedRuntime): Promise<void> {
  const main = join(job, "dist/main.js");
  const args = [main, "mcp-server", "start", "--transport", "http", "--config", writeConfig(runtime)];
  const env = { PATH: process.env["PATH"], HOME: place, MSB_HOME: msb, OWNER_SECRET: canary };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let isUseless = false;
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      process.stderr.write(`${line}\n`);
      // It would go on, and say so with every call.
      if (line.includes('"sandboxes are not available"')) isUseless = child.kill("SIGTERM");
      if (line.includes('"listening"') && !isUseless) resolve();
    });
    child.once("exit", () => reject(new Error("the server ended")));
  });
  servers.set(runtime, child);
}

async function endServers(signal: NodeJS.Signals): Promise<void> {
  for (const [runtime, child] of servers) {
    servers.delete(runtime);
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill(signal);
    await once(child, "exit");
  }
}

/** Process ids of microVMs, ours and those of others that were made here; or of those whose command says `word`. */
function machines(word = ""): number[] {
  return execFileSync("ps", ["-ewwo", "pid,args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes("/bin/msb sandbox") && [job, msb].some((folder) => line.includes(folder)))
    .filter((line) => line.includes(word))
    .map((line) => Number.parseInt(line, 10));
}

function facts(): object {
  const list = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
  const read = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");
  const sandboxes = list(join(msb, "sandboxes"));
  const logs = sandboxes.flatMap((name) => {
    const file = join(msb, "sandboxes", name, "logs/exec.log");
    return existsSync(file) ? [{ bytes: statSync(file).size, text: read(file).slice(0, 2000) }] : [];
  });
  const written = read(join(volume, "made.txt"));
  const folders = list(join(data, "sandboxes"));
  const lines = join(data, "microsandbox/lines");
  const sockets = list(lines).flatMap((server) => list(join(lines, server)).map((name) => join(server, name)));
  return { machines: machines().length, sandboxes, folders, sockets, written, logs, log: log.slice(-40) };
}

/** Another application's machine, which nobody of ours may touch. It stands still, since its kernel takes time from the others. */
async function makeForeign(): Promise<void> {
  const words = "create owlclaw-sandbox --name foreign --memory 256M --no-net --pull never".split(" ");
  const made = spawn(MSB, words, { env: MSB_ENV, stdio: ["ignore", "inherit", "inherit"] });
  const [code] = (await once(made, "exit")) as [number | null];
  if (code !== 0) throw new Error(`msb create ended with ${code}`);
  if (machines("foreign").filter((pid) => signalled(pid, "SIGSTOP")).length !== 1)
    throw new Error("no foreign machine");
}

/** Longer than the kernel in a microVM waits for an answer of the host. */
const STANDSTILL_MS = 2500;
/** A host that is too busy to answer in time: its microVMs stand still half of the time. */
let busy = new AbortController();
async function beBusy(): Promise<void> {
  busy = new AbortController();
  for (const { signal } = busy; !signal.aborted;) {
    const stopped = machines().filter((pid) => signalled(pid, "SIGSTOP"));
    await delay(STANDSTILL_MS);
    for (const pid of stopped) signalled(pid, "SIGCONT");
    await delay(STANDSTILL_MS);
  }
}

/** It may have ended meanwhile. */
function signalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** As root, then as a user whose systemd has started with the machine; lines of JSON. */
async function tryLimits(): Promise<object> {
  await endServers("SIGTERM");
  const script = [process.execPath, join(job, "limits.mjs")];
  while (!existsSync("/run/user/1000/bus")) await delay(100);
  const asUser = ["--reuid=1000", "--regid=1000", "--init-groups", "env", "HOME=/home/ada", ...script];
  const told = [await run("env", script), await run("setpriv", asUser)];
  return { limits: told.join("").split("\n").filter(Boolean) };
}

/** The server as a service of the machine, in the place of the one that was started here; lines of JSON. */
async function tryUnit(): Promise<object> {
  await endServers("SIGTERM");
  const told = await run(process.execPath, [join(job, "unit.mjs"), job, String(ports.bubblewrap)]);
  return { unit: told.split("\n").filter(Boolean) };
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const child = promisify(execFile)(command, args);
  child.child.stderr?.pipe(process.stderr, { end: false });
  return (await child).stdout;
}

/** A server listens on its loopback as always; this leads to it from outside. */
function lead(from: number, to: number): void {
  createServer((outer) => {
    const inner = connect(to, "127.0.0.1");
    outer.on("error", () => inner.destroy()).pipe(inner);
    inner.on("error", () => outer.destroy()).pipe(outer);
  }).listen(from);
}

const ACTS: Readonly<Record<string, () => Promise<object | void>>> = {
  "/foreign": makeForeign,
  "/bubblewrap": async () => await startServer("bubblewrap"),
  "/limits": tryLimits,
  "/unit": tryUnit,
  "/busy": () => Promise.resolve(void beBusy()),
  "/calm": () => Promise.resolve(busy.abort()),
  "/kill": async () => {
    await endServers("SIGKILL");
    await startServer("microsandbox");
  },
};

process.once("SIGTERM", () => {
  const end = async (): Promise<void> => {
    await endServers("SIGTERM");
    if (!existsSync(join(msb, "sandboxes/foreign"))) return;
    for (const pid of machines("foreign")) signalled(pid, "SIGCONT");
    execFileSync(MSB, ["remove", "--force", "foreign"], { env: MSB_ENV });
  };
  void end().finally(() => process.exit());
});

await startServer(order.starts);
if (order.doors !== undefined) {
  lead(order.doors.microsandbox, ports.microsandbox);
  lead(order.doors.bubblewrap, ports.bubblewrap);
}
createHttp((request, response) => {
  const answer = async (): Promise<object> => {
    const more = await ACTS[request.url ?? ""]?.();
    return { ...facts(), ...more };
  };
  answer().then(
    (value) => response.end(JSON.stringify(value)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
}).listen(order.keeper.port, order.keeper.host);
process.stdout.write("ready\n");
