import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { BIN, makePlace, writeConfig } from "./sandbox-client.ts";

test("the doctor tries to break out of a sandbox and has code run in one", () => {
  const place = makePlace();
  const args = [BIN, "mcp-server", "doctor", "--json", "--config", writeConfig(place, {})];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", cwd: place.folder });
  const checks = JSON.parse(stdout) as { name: string; status: string; message: string }[];
  expect(stderr).not.toContain("Error");
  expect(checks.find(({ name }) => name === "runtime")).toMatchObject({
    status: "ok",
    message: expect.stringMatching(/ways out were tried/),
  });
  expect(checks.at(-1)).toMatchObject({ status: "ok", message: expect.stringMatching(/code_run answered 42/) });
});
