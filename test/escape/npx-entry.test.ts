import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const folder = mkdtempSync(join(tmpdir(), "owlclaw-npx-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A package `owlclaw` that says whose it is. */
function makePackage(at: string, says: string): void {
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, "package.json"), JSON.stringify({ name: "owlclaw", version, bin: { owlclaw: "main.js" } }));
  writeFileSync(join(at, "main.js"), `#!/usr/bin/env node\nconsole.log(${JSON.stringify(says)}, process.cwd());\n`);
  chmodSync(join(at, "main.js"), 0o755);
}

/** The registry of npm, with that package alone. */
async function openRegistry(archive: Buffer) {
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    if (request.url?.endsWith(".tgz") === true) return void response.end(archive);
    const dist = { tarball: `http://127.0.0.1:${port}/owlclaw.tgz` };
    const versions = { [version]: { name: "owlclaw", version, bin: { owlclaw: "main.js" }, dist } };
    response.statusCode = request.url === "/owlclaw" ? 200 : 404;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name: "owlclaw", "dist-tags": { latest: version }, versions }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

test("a client that starts what install wrote in a cloned repository runs nothing of that repository", async () => {
  const home = join(folder, "home");
  const clone = join(folder, "clone");
  mkdirSync(home);
  makePackage(join(folder, "published"), "the registry's");
  const packed = await run("npm", ["pack", "--json", "--pack-destination", folder, join(folder, "published")]);
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  const registry = await openRegistry(readFileSync(join(folder, filename)));
  writeFileSync(join(home, ".npmrc"), `registry=http://127.0.0.1:${(registry.address() as AddressInfo).port}/\n`);

  makePackage(join(clone, "node_modules/owlclaw"), "the clone's");
  mkdirSync(join(clone, "node_modules/.bin"));
  symlinkSync("../owlclaw/main.js", join(clone, "node_modules/.bin/owlclaw"));
  writeFileSync(join(clone, "shell.sh"), '#!/bin/sh\necho "the clone\'s"\n', { mode: 0o755 });
  writeFileSync(join(clone, ".npmrc"), `script-shell=${join(clone, "shell.sh")}\n`);

  const main = join(folder, "_npx/1/node_modules/owlclaw/dist/main.js");
  mkdirSync(dirname(dirname(main)), { recursive: true });
  symlinkSync(join(ROOT, "dist"), dirname(main));
  const env = { PATH: process.env["PATH"], HOME: home, npm_config_update_notifier: "false" };
  await run(process.execPath, [main, "install", "claude-code", "--yes"], { cwd: clone, env });
  const { mcpServers } = JSON.parse(readFileSync(join(home, ".claude.json"), "utf8")) as {
    mcpServers: Record<string, { command: string; args: string[] }>;
  };
  const { command = "", args = [] } = mcpServers["owlclaw"] ?? {};
  expect(command).toBe("npx");
  const { stdout } = await run(command, args, { cwd: clone, env });
  registry.close();
  expect(stdout).toBe(`the registry's ${clone}\n`);
});
