import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openGuestSocket } from "../../../../../src/sandbox/runtimes/microsandbox/host-socket.ts";
import { LAUNCH_SCRIPT } from "../../../../../src/sandbox/runtimes/microsandbox/launch-script.ts";

test("a call that ends before it says anything is none; the next one is taken, whole but for its first byte", async () => {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-line-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const line = await openGuestSocket(folder);
  onTestFinished(async () => await line.close());
  const gaveUp = connect(line.path);
  await once(gaveUp, "connect");
  gaveUp.destroy();
  const stays = connect(line.path);
  stays.write("\0first ");
  const taken = await line.connected;
  stays.end("second");
  let said = "";
  for await (const chunk of taken) said += String(chunk);
  expect(said).toBe("first second");
});

test("who comes second is sent away", async () => {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-line-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const line = await openGuestSocket(folder);
  onTestFinished(async () => await line.close());
  const first = connect(line.path);
  first.write("\0");
  await line.connected;
  const second = connect(line.path);
  second.on("error", () => undefined).write("\0");
  await once(second, "close");
  expect(first.destroyed).toBe(false);
  first.destroy();
});

test("the launcher is a program that Python can read", () => {
  const check = "import sys; compile(sys.stdin.read(), 'launcher', 'exec')";
  expect(execFileSync("python3", ["-c", check], { input: LAUNCH_SCRIPT, encoding: "utf8" })).toBe("");
});
