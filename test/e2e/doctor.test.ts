import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allProcesses } from "../escape/sandbox-lab.ts";
import { BIN, makePlace, type Place, type Settings, writeConfig } from "./sandbox-client.ts";

interface Check {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

function doctor(place: Place, settings: Settings = {}): { find(name: string): Check | undefined; code: number | null } {
  const args = [BIN, "mcp-server", "doctor", "--json", "--config", writeConfig(place, settings)];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8", cwd: place.folder });
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

test("a browser that cannot start is a failure with what to do; one that nobody is offered is not looked at", () => {
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
  expect(doctor(makePlace(), { tools: { toolsets: ["code"] } }).find("browser")).toBeUndefined();
});
