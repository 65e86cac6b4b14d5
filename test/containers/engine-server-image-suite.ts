import { execFile } from "node:child_process";
import { cpSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { call, connectHttp } from "../e2e/sandbox-client.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { freePort } from "../services/free-port.ts";
import { PATIENCE } from "./engine-lab.ts";

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, "../..");
const RECIPE = join(ROOT, "deploy/docker/server.Dockerfile");
/** What the base image has already: nothing is fetched. */
const PACKAGES = "bash bubblewrap git libstdc++6 procps python3 util-linux";
/** Those of the recipe's own example, on the machine's network: the engine has none of its own. */
const optionsFor = (port: number): readonly string[] =>
  [
    ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"],
    ["--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined"],
    [
      "--network",
      "host",
      "-e",
      "MCP_SERVER_HOST=127.0.0.1",
      "-e",
      `MCP_SERVER_PORT=${port}`,
      "-v",
      "server-data:/data",
    ],
  ].flat();

/** The package, and all that it depends on where npm looks before it asks anybody. */
async function pack(folder: string): Promise<{ readonly cache: string; readonly context: string }> {
  const context = join(folder, "context");
  const cache = join(folder, "npm-cache");
  mkdirSync(context);
  const packed = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", context], { cwd: ROOT });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  const archive = join(context, "owlclaw.tgz");
  await run("mv", [join(context, filename), archive]);
  const flags = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", cache, "--prefix"];
  await run("npm", ["install", ...flags, join(folder, "installed"), archive], { cwd: folder });
  return { cache, context };
}

/** A stand-in for the official image of Node, which no test can fetch: npm finds everything in its cache. */
async function importNode({ cli, folder, image }: ContainerEngine, cache: string): Promise<void> {
  const local = join(folder, "server-node", "local");
  mkdirSync(join(local, "bin"), { recursive: true });
  cpSync(process.execPath, join(local, "bin/node"), { dereference: true });
  const npm = resolve(realpathSync((await run("which", ["npm"])).stdout.trim()), "../..");
  cpSync(npm, join(local, "lib/node_modules/npm"), { recursive: true, dereference: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm"));
  const registry = (await run("npm", ["config", "get", "registry"])).stdout.trim();
  const made = await cli("create", image, "true");
  await cli("cp", local, `${made}:/usr/`);
  await cli("cp", cache, `${made}:/npm-cache`);
  const settings = { offline: "true", cache: "/npm-cache", registry };
  const changes = Object.entries(settings).flatMap(([name, value]) => ["-c", `ENV npm_config_${name}=${value}`]);
  await cli("commit", ...changes, made, "server-node");
  await cli("rm", made);
}

/** The recipe of the server's own image, from the package that would be published. */
export function defineServerImageTest(engine: () => ContainerEngine): void {
  test("the image that deploy/docker builds runs the server as an ordinary user, with sandboxes inside, and ends when it is told to", async () => {
    const { cli, folder, image } = engine();
    const { cache, context } = await pack(folder);
    await importNode(engine(), cache);
    const bases = { NODE_IMAGE: "server-node", BASE_IMAGE: image, PACKAGES };
    const args = Object.entries(bases).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
    await cli("build", "--network", "none", ...args, "-t", "server", "-f", RECIPE, context);
    const port = await freePort();
    const container = await cli("run", "-d", ...optionsFor(port), "server");
    onTestFinished(async () => void (await cli("rm", "-f", container)));
    await vi.waitFor(async () => {
      expect((await fetch(`http://127.0.0.1:${port}/health/ready`)).status).toBe(200);
    }, PATIENCE);
    const client = await connectHttp(`http://127.0.0.1:${port}/mcp`);
    for (const language of ["python", "node"]) {
      const ran = await call(client, "code_run", { code: "6 * 7", language });
      expect(ran.structuredContent).toMatchObject({ value: "42" });
    }
    const seen = await call(client, "shell_exec", { command: "cat /proc/1/comm; ls /app /data 2>&1 | head -1" });
    expect(seen.structuredContent).toMatchObject({ exit_code: 0, stdout: expect.not.stringContaining("node_modules") });
    expect(await cli("exec", container, "id", "-u")).toBe("10001");
    await client.close();
    await cli("stop", "--time", "60", container);
    expect(await cli("inspect", "--format", "{{.State.ExitCode}}", container)).toBe("0");
  });
}
