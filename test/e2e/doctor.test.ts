import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { allProcesses } from "../escape/sandbox-lab.ts";
import { BIN, makePlace, type Place, type Settings, writeConfig } from "./sandbox-client.ts";

/** In which nobody installed microsandbox either. */
const NODE_22 = resolve(import.meta.dirname, `../conformance/runner/node_modules/node-linux-${process.arch}/bin/node`);

interface Check {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

interface Told {
  readonly code: number | null;
  find(name: string): Check | undefined;
}

function doctor(place: Place, settings: Settings = {}, node = process.execPath): Told {
  const args = [BIN, "mcp-server", "doctor", "--json", "--config", writeConfig(place, settings)];
  const { stdout, stderr, status } = spawnSync(node, args, { encoding: "utf8", cwd: place.folder });
  expect(stderr).not.toContain("Error");
  const checks = JSON.parse(stdout) as Check[];
  return { find: (name) => checks.find((check) => check.name === name), code: status };
}

test("the doctor tries to break out of a sandbox, has code run in one and a page drawn, and leaves nothing", () => {
  const place = makePlace();
  const { find, code } = doctor(place);
  expect(find("runtime bubblewrap")).toMatchObject({
    status: "ok",
    message: expect.stringMatching(/^(\d+) of \1 ways out that were tried are shut; a sandbox starts in \d+ ms$/),
  });
  expect(find("user namespaces")).toMatchObject({ status: "ok" });
  expect(find("runtime")).toMatchObject({ status: "ok", message: "auto takes bubblewrap" });
  expect(find("a call over stdio")).toMatchObject({ message: expect.stringMatching(/code_run answered 42/) });
  expect(find("browser")).toMatchObject({
    status: "ok",
    message: expect.stringMatching(/^Chromium \d+ opened a page in a sandbox in \d+ ms, and drew it$/),
  });
  expect(code).toBe(0);
  expect(allProcesses().filter(({ command }) => command.includes(place.folder))).toEqual([]);
  for (const folder of ["sandboxes", join("bubblewrap", "cells")])
    expect(readdirSync(join(place.dataFolder, folder))).toEqual([]);
});

test("a browser that cannot start is a failure with what to do", () => {
  const place = makePlace();
  const folder = join(place.folder, "chrome");
  const executable = join(folder, "chrome");
  mkdirSync(folder, { mode: 0o755 });
  writeFileSync(executable, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  writeFileSync(join(folder, "icudtl.dat"), "");
  const { find, code } = doctor(place, { sandbox: { browser: { executable } } });
  expect(find("a call over stdio")).toMatchObject({ status: "ok" });
  expect(find("browser")).toMatchObject({
    status: "failed",
    message: expect.stringMatching(/^browser_goto failed: the browser does not start: .*$/),
    fix: expect.stringContaining("tools.toolsets"),
  });
  expect(code).toBe(1);
});

test.each<[string, Settings, RegExp]>([
  [
    "sandboxes only when asked for",
    { sandbox: { autoCreate: false }, tools: { toolsets: ["sandbox", "code"] } },
    /^code_run answered 42, in \d+ ms$/,
  ],
  ["files alone", { tools: { toolsets: ["files"] } }, /^file_list answered, in \d+ ms$/],
  ["the shell alone", { tools: { toolsets: ["shell"] } }, /^shell_exec answered 42, in \d+ ms$/],
  ["sandboxes alone", { tools: { toolsets: ["sandbox"] } }, /^sandbox_create answered, in \d+ ms$/],
  [
    "sandboxes only when asked for, and nothing to ask",
    { sandbox: { autoCreate: false }, tools: { toolsets: ["code"] } },
    /^the server starts and lists its tools, in \d+ ms$/,
  ],
  ["code under other names", { tools: { toolsets: ["code"], dialects: ["microsandbox"] } }, /^code_run answered 42/],
  [
    "a policy that hides code from the doctor",
    {
      governance: { clients: { doctor: { hidden: ["code_run", "browser_*"] } } },
      tools: { toolsets: ["code", "shell", "browser"] },
    },
    /^shell_exec answered 42/,
  ],
  [
    "a policy that wants a yes to everything",
    {
      governance: { tools: { "*": { confirm: "operator" } }, approvalTimeoutSeconds: 1000 },
      tools: { toolsets: ["code"] },
    },
    /^the server starts, and its policy refuses the call to the client doctor: .*approv/,
  ],
])("the whole way is well with %s, and no browser is looked at that nobody is offered", (_what, settings, message) => {
  const { find, code } = doctor(makePlace(), settings);
  expect(find("a call over stdio")).toMatchObject({ status: "ok", message: expect.stringMatching(message) });
  expect(find("browser")).toBeUndefined();
  expect(code).toBe(0);
});

test("without the npm package of microsandbox the doctor says what to install, and fails for it only where it is asked for", () => {
  const told = {
    message: "the npm package microsandbox is not installed",
    fix: expect.stringMatching(/^Install it beside OwlClaw: `npm install microsandbox` .*Node 22/) as unknown,
  };
  const tools = { toolsets: ["code"] };
  const { find, code } = doctor(makePlace(), { tools }, NODE_22);
  expect(find("runtime microsandbox")).toMatchObject({ status: "warning", ...told });
  expect([find("runtime")?.message, code]).toEqual(["auto takes bubblewrap", 0]);
  const asked = doctor(makePlace(), { tools, sandbox: { runtime: "microsandbox" } }, NODE_22);
  expect(asked.find("runtime microsandbox")).toMatchObject({ status: "failed", ...told });
  expect(asked.code).toBe(1);
});

test("on a Node that is too old for microsandbox the doctor says so first", (context) => {
  if (!process.version.startsWith("v20.")) context.skip(`the tests run on Node ${process.version}`);
  expect(doctor(makePlace(), { tools: { toolsets: ["code"] } }).find("runtime microsandbox")).toMatchObject({
    status: "warning",
    message: `microsandbox needs Node 22 or newer, and this is ${process.version}`,
    fix: expect.stringMatching(/^Start OwlClaw with Node 22 or newer, and install the npm package microsandbox/),
  });
});
