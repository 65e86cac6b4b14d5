import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { arch, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PackedServer, startPacked } from "./packed-server.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const INSTALL_MS = 300_000;
const run = promisify(execFile);

const folder = mkdtempSync(join(tmpdir(), "owlclaw-package-"));
const empty = join(folder, "empty");
let archive = "";
let files: readonly string[] = [];
let cache = "";
let known: ReadonlySet<string> = new Set();

const installed = (): string[] => (existsSync(cache) ? readdirSync(cache) : []);

beforeAll(async () => {
  mkdirSync(empty);
  const packed = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: ROOT });
  const [facts] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }];
  archive = join(folder, facts.filename);
  files = facts.files.map(({ path }) => path);
  cache = join((await run("npm", ["config", "get", "cache"])).stdout.trim(), "_npx");
  known = new Set(installed());
}, INSTALL_MS);

afterAll(() => {
  for (const name of installed().filter((each) => !known.has(each))) rmSync(join(cache, name), { recursive: true });
  rmSync(folder, { recursive: true, force: true });
});

/** Everything that belongs into the package; whatever else is in it is there by mistake. */
const BELONGS = [
  /^(CHANGELOG\.md|LICENSE|README\.md|package\.json)$/,
  /^deploy\/docker\/sandbox\.Dockerfile$/,
  /^dist\/(main|index)\.js$/,
  /^dist\/licenses\.txt$/,
  /^dist\/chunks\/[\w-]+\.js$/,
  /^dist\/(governance\/ledger\/sqlite\/thread-main|handlers\/workers\/node-worker|handlers\/typescript\/compiler-process)\.js$/,
  /^dist\/(index|auth\/principal|errors\/[\w-]+|capability\/[\w-]+)\.d\.ts$/,
  /^dist\/handlers\/python\/owlclaw\/(\w+\.py|py\.typed)$/,
  /^dist\/dashboard\/(index\.html|licenses\.txt|assets\/[\w-]+\.(js|css|svg))$/,
  /^dist\/guest\/[\w-]+\.(mjs|cjs|py|js)$/,
  /^dist\/guest\/handlers-python\/owlclaw\/(\w+\.py|py\.typed)$/,
  /^dist\/guest\/node_modules\/(jiti|playwright-core)\/.+/,
  /^dist\/node_modules\/typescript-6\/(package\.json|LICENSE\.txt|ThirdPartyNoticeText\.txt|lib\/(typescript\.js|lib\.([\w.]+\.)?d\.ts))$/,
];

test("the package has what is needed and nothing else", () => {
  expect(files.filter((path) => !BELONGS.some((pattern) => pattern.test(path)))).toEqual([]);
  const top = files.filter((path) => !/chunks|guest|node_modules|dashboard\/assets|\.d\.ts$|python/.test(path));
  expect(top.toSorted()).toEqual([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "deploy/docker/sandbox.Dockerfile",
    "dist/dashboard/index.html",
    "dist/dashboard/licenses.txt",
    "dist/governance/ledger/sqlite/thread-main.js",
    "dist/handlers/typescript/compiler-process.js",
    "dist/handlers/workers/node-worker.js",
    "dist/index.js",
    "dist/licenses.txt",
    "dist/main.js",
    "package.json",
  ]);
  const page = files.flatMap((path) => /^dist\/dashboard\/assets\/(\w+)-/.exec(path)?.[1] ?? []);
  expect(page).toEqual(expect.arrayContaining(["icon", "main", "style", "theme"]));
  const guest = files.filter((path) => /^dist\/guest\/[^/]+$/.test(path));
  expect(guest.map((path) => path.slice("dist/guest/".length)).toSorted()).toEqual([
    "browser-driver.mjs",
    "container_init.py",
    "driver.py",
    "egress-relay.mjs",
    "guest.mjs",
    "handler-worker.mjs",
    "node-driver.mjs",
    "owlclaw.mjs",
    "owlclaw_matplotlib.py",
    "owlclaw_pictures.py",
    "page-engine.js",
    "proxy-preload.cjs",
    "search-worker.mjs",
    "spawner.py",
    "terminal.py",
  ]);
});

const HANDLER = `import { defineHandler, z, type Definition } from "owlclaw";
const greeting: Definition = defineHandler({
  name: "greet",
  description: "Greets",
  input: z.object({ name: z.string() }),
  run: ({ name }) => "hello " + name,
});
export { greeting };

/** Adds two numbers. */
export function plus(a: number, b: number): number {
  return a + b;
}
`;

/** A server's whole configuration, beside the handlers. */
function configure(name: string): string {
  const place = join(folder, name);
  mkdirSync(place);
  writeFileSync(join(place, "greet.ts"), HANDLER);
  const config = join(place, "mcp-server.yaml");
  writeFileSync(
    config,
    JSON.stringify({
      http: { host: "127.0.0.1", port: 0 },
      handlers: { paths: [join(place, "*.ts")] },
      sandbox: { root: join(place, "data"), pool: { size: 0 }, limits: "best-effort" },
    }),
  );
  return config;
}

async function tryTools(client: Client): Promise<void> {
  const text = async (name: string, args: Record<string, unknown>): Promise<string> =>
    JSON.stringify(await client.callTool({ name, arguments: args }));
  expect(await text("code_run", { code: "20 + 22" })).toContain("value 42");
  expect(await text("greet", { name: "owl" })).toContain("hello owl");
  expect(await text("plus", { a: 20, b: 22 })).toContain("42");
}

/** What npx has made of the package. */
function mainFile(): string {
  const name = installed().find((each) => !known.has(each)) ?? "";
  return join(cache, name, "node_modules", "owlclaw", "dist", "main.js");
}

test(
  "npx runs the package in an empty folder, and a real client calls its tools over stdio",
  { timeout: INSTALL_MS },
  async () => {
    const npx = ["--yes", "--package", archive, "owlclaw"];
    expect((await run("npx", [...npx, "--version"], { cwd: empty })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(readdirSync(empty)).toEqual([]);
    const client = new Client({ name: "package-test", version: "1" });
    const args = [...npx, "mcp-server", "start", "--config", configure("stdio")];
    await client.connect(new StdioClientTransport({ command: "npx", args, cwd: empty, stderr: "ignore" }));
    try {
      await tryTools(client);
    } finally {
      await client.close();
    }
  },
);

test.each(["20", "22", "24"])(
  "what npx installed runs code and handlers over HTTP on Node %s, and stops well",
  { timeout: INSTALL_MS },
  async (line) => {
    const node = join(ROOT, "test/nodes/node_modules", `node-${line}-linux-${arch()}`, "bin/node");
    const server: PackedServer = await startPacked({
      node,
      main: mainFile(),
      config: configure(`node-${line}`),
      cwd: empty,
    });
    try {
      const client = new Client({ name: "package-test", version: "1" });
      await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
      await tryTools(client);
      await client.close();
    } finally {
      server.child.kill("SIGTERM");
    }
    const [code] = (await once(server.child, "exit")) as [number | null];
    expect({ code, log: server.log() }).toMatchObject({ code: 0 });
  },
);

test(
  "doctor of the package proves the whole way, and every check says what it found",
  { timeout: INSTALL_MS },
  async () => {
    const args = [mainFile(), "mcp-server", "doctor", "--json", "--config", configure("doctor")];
    const { stdout } = await run(process.execPath, args, { cwd: empty }).catch((error: { stdout: string }) => error);
    const checks = JSON.parse(stdout) as { name: string; status: string; message: string }[];
    expect(checks.find(({ name }) => name === "clock")).toMatchObject({ status: "ok" });
    expect(checks.find(({ name }) => name === "a call over stdio")).toMatchObject({ status: "ok" });
  },
);

test("the types of the package are whole: a handler is checked against them by a compiler of the user's own", async () => {
  const place = join(folder, "types");
  mkdirSync(join(place, "node_modules"), { recursive: true });
  writeFileSync(join(place, "greet.ts"), HANDLER);
  const owlclaw = join(mainFile(), "../..");
  const paths = { owlclaw: [join(owlclaw, "dist/index.d.ts")], zod: [join(owlclaw, "../zod/index.d.cts")] };
  const options = { strict: true, noEmit: true, module: "nodenext", target: "es2023", types: [], paths };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["greet.ts"] }));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout } = await run(process.execPath, [compiler, "-p", place]).catch((error: { stdout: string }) => error);
  expect(stdout).toBe("");
});

test("the package names its licence, its bin and the oldest Node that runs it", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, unknown>;
  expect(manifest).toMatchObject({
    license: "Apache-2.0",
    bin: { owlclaw: "dist/main.js" },
    engines: { node: ">=20.19" },
  });
  const scripts = Object.keys(manifest["scripts"] as object);
  // Nothing of ours runs when somebody installs it.
  expect(scripts.filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([]);
});
