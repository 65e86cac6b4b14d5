/**
 * Runs inside the virtual machine: keeps a server with microVMs, and one with bubblewrap when it is asked to, and tells the
 * test outside what it cannot see itself. Two ports lead to the servers, the third one here.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const [canary = "", ...ports] = process.argv.slice(2);
const [microsandboxPort, bubblewrapPort] = ports.map(Number);
const DATA = "/root/data";
const VOLUME = "/srv/beside";
const log: string[] = [];

mkdirSync(VOLUME, { recursive: true });
writeFileSync(`${VOLUME}/secret.txt`, canary);

/** The world outside, of which sandboxes of one template may reach a part. */
const SITE = "127.0.0.3";
const LARGE = Buffer.alloc(1_000_000, "x");
writeFileSync("/etc/hosts", `127.0.0.1 localhost\n${SITE} good.test bad.test\n`);
createHttp((request, response) => {
  response.end(request.url === "/large.bin" ? LARGE : "hello from outside");
}).listen(80, SITE);

interface Wish {
  readonly runtime: "microsandbox" | "bubblewrap";
  readonly root: string;
  readonly port: number | undefined;
}

function writeConfig({ runtime, root, port }: Wish): string {
  const file = `/root/${runtime}.json`;
  const config = {
    http: { host: "127.0.0.1", port },
    logging: { level: "info" },
    governance: { defaults: { callsPerMinute: 100_000, concurrency: 1000 } },
    sandbox: {
      root,
      runtime,
      image: "owlclaw-sandbox",
      pool: { size: 0 },
      maxPerPrincipal: 50,
      volumes: [`${VOLUME}:/workspace2`],
      network: { templates: { node: ["good.test", SITE] } },
    },
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

async function startServer(wish: Wish): Promise<ChildProcess> {
  const args = ["/job/dist/main.js", "mcp-server", "start", "--transport", "http", "--config", writeConfig(wish)];
  const env = { PATH: process.env["PATH"], HOME: "/root", MSB_HOME: "/job/msb", OWNER_SECRET: canary };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      process.stderr.write(`${line}\n`);
      if (line.includes('"listening"')) resolve();
    });
    child.once("exit", () => reject(new Error("the server ended")));
  });
  return child;
}

function machines(): string[] {
  return execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes("/bin/msb sandbox"));
}

function facts(): unknown {
  const sandboxes = existsSync("/job/msb/sandboxes") ? readdirSync("/job/msb/sandboxes") : [];
  const folders = existsSync(`${DATA}/sandboxes`) ? readdirSync(`${DATA}/sandboxes`) : [];
  const written = existsSync(`${VOLUME}/made.txt`) ? readFileSync(`${VOLUME}/made.txt`, "utf8") : "";
  const logs = sandboxes.flatMap((name) => {
    const file = `/job/msb/sandboxes/${name}/logs/exec.log`;
    return existsSync(file) ? [{ bytes: statSync(file).size, text: readFileSync(file, "utf8").slice(0, 2000) }] : [];
  });
  return { machines: machines().length, sandboxes, folders, written, logs, log: log.slice(-40) };
}

/** Another application's machine, which nobody of ours may touch. */
function makeForeign(): void {
  const msb = "/job/node_modules/@superradcompany/microsandbox-linux-x64-gnu/bin/msb";
  execFileSync(
    msb,
    ["create", "owlclaw-sandbox", "--name", "foreign", "--memory", "256M", "--no-net", "--pull", "never"],
    {
      env: { ...process.env, MSB_HOME: "/job/msb" },
      stdio: "inherit",
    },
  );
}

/** A server listens on its loopback as always; this leads to it from outside. */
function lead(from: number, to: number | undefined): void {
  createServer((outer) => {
    const inner = connect(to ?? 0, "127.0.0.1");
    outer.on("error", () => inner.destroy()).pipe(inner);
    inner.on("error", () => outer.destroy()).pipe(outer);
  }).listen(from);
}

const MICROVMS: Wish = { runtime: "microsandbox", root: DATA, port: microsandboxPort };
const CONTROLLED: Wish = { runtime: "bubblewrap", root: "/root/other", port: bubblewrapPort };
let server = await startServer(MICROVMS);
lead(9000, microsandboxPort);
lead(9002, bubblewrapPort);

const ACTS: Readonly<Record<string, () => Promise<void> | void>> = {
  "/foreign": makeForeign,
  "/bubblewrap": async () => void (await startServer(CONTROLLED)),
  "/kill": async () => {
    server.kill("SIGKILL");
    await once(server, "exit");
    server = await startServer(MICROVMS);
  },
};

createHttp((request, response) => {
  const answer = async (): Promise<unknown> => {
    await ACTS[request.url ?? ""]?.();
    return facts();
  };
  answer().then(
    (value) => response.end(JSON.stringify(value)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
}).listen(9001);
process.stdout.write("ready\n");
