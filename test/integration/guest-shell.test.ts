import type { GuestParams } from "../../contract/guest.ts";
import { randomInt } from "node:crypto";
import { existsSync, readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";
import { isAlive } from "./is-alive.ts";

function exec(guest: Guest, command: string, options: Partial<GuestParams["shell.exec"]> = {}) {
  const params = { callId: "call", command, timeoutMs: 20_000, maxOutputChars: 10_000, background: false, ...options };
  return guest.call("shell.exec", params);
}

async function pidFrom(guest: Guest, name: string): Promise<number> {
  const path = join(guest.workspace, name);
  await vi.waitFor(() => expect(existsSync(path) && readFileSync(path, "utf8")).toMatch(/\d+\n/u), 20_000);
  return Number(readFileSync(path, "utf8"));
}

test("gives stdout, stderr and the exit code apart", async () => {
  const guest = await startGuest();
  expect(await exec(guest, "echo out; echo err >&2; exit 3")).toEqual({
    status: "exited",
    exitCode: 3,
    signal: null,
    stdout: { text: "out\n", totalChars: 4 },
    stderr: { text: "err\n", totalChars: 4 },
    durationMs: expect.any(Number),
    leftRunning: [],
  });
});

test("names the signal that ended the command", async () => {
  const guest = await startGuest();
  expect(await exec(guest, "kill -SEGV $$")).toMatchObject({ status: "exited", exitCode: null, signal: "SIGSEGV" });
  expect(await exec(guest, "kill -9 $$")).toMatchObject({ status: "exited", exitCode: null, signal: "SIGKILL" });
});

test("passes stdin, environment and folder", async () => {
  const guest = await startGuest();
  mkdirSync(join(guest.workspace, "sub"));
  const result = await exec(guest, 'cat; echo "$GREETING"; pwd', {
    stdin: "in\n",
    env: { GREETING: "hé" },
    cwd: "sub",
  });
  expect(result.stdout.text).toBe(`in\nhé\n${guest.workspace}/sub\n`);
  expect((await exec(guest, "cat")).stdout.text).toBe("");
  const large = "x".repeat(3_000_000);
  expect((await exec(guest, "wc -c", { stdin: large })).stdout.text.trim()).toBe("3000000");
  expect((await exec(guest, "head -c 1", { stdin: large })).stdout.text).toBe("x");
});

test("keeps its own settings from the command", async () => {
  const guest = await startGuest({ env: { FROM_TEMPLATE: "yes" } });
  const { stdout } = await exec(guest, "env");
  expect(stdout.text).toContain("FROM_TEMPLATE=yes");
  expect(stdout.text).not.toContain("OWLCLAW");
});

test("takes a command as it is: leading dashes, quotes, line breaks, megabytes", async () => {
  const guest = await startGuest();
  expect((await exec(guest, "-x")).exitCode).toBe(127);
  expect((await exec(guest, `printf '%s\n' "a'b" '"c"'\necho d`)).stdout.text).toBe(`a'b\n"c"\nd\n`);
  const long = `: ${"x".repeat(2_000_000)}\necho end`;
  expect((await exec(guest, long)).stdout.text).toBe("end\n");
});

test("an environment that the system does not take is refused, and the next command runs", async () => {
  const guest = await startGuest();
  await expect(exec(guest, "true", { env: { BIG: "x".repeat(200_000) } })).rejects.toMatchObject({ code: -32602 });
  await expect(exec(guest, "true", { env: { "A=B": "x" } })).rejects.toMatchObject({ code: -32602 });
  expect((await exec(guest, "echo next")).stdout.text).toBe("next\n");
});

test("gives a program pipes that it can open again", async () => {
  const guest = await startGuest();
  const { stdout, stderr } = await exec(guest, "echo a > /dev/stdout; echo b > /dev/stderr; echo c | tee /dev/stderr");
  expect(stdout.text).toBe("a\nc\n");
  expect(stderr.text).toBe("b\nc\n");
});

test("refuses a folder outside the workspace, and one that is not there", async () => {
  const guest = await startGuest();
  await expect(exec(guest, "pwd", { cwd: "/etc" })).rejects.toMatchObject({ data: { kind: "outside_workspace" } });
  await expect(exec(guest, "pwd", { cwd: "../.." })).rejects.toMatchObject({ data: { kind: "outside_workspace" } });
  await expect(exec(guest, "pwd", { cwd: "nowhere" })).rejects.toMatchObject({ data: { kind: "not_found" } });
});

test("at the time-out it ends daemons and double forks, keeps the output so far, and goes on", async () => {
  const guest = await startGuest();
  const command = `
    echo before
    setsid nohup bash -c 'echo $$ > daemon; exec sleep 300' >/dev/null 2>&1 &
    (bash -c 'setsid bash -c "trap : TERM INT HUP; echo \\$\\$ > orphan; while :; do sleep 1; done" &') &
    env -i /bin/sleep 300 & echo $! > bare
    while [ ! -s daemon ] || [ ! -s orphan ]; do sleep 0.01; done
    sleep 300`;
  const result = await exec(guest, command, { timeoutMs: 10_000 });
  expect(result).toMatchObject({ status: "timeout", exitCode: null, signal: "SIGKILL", leftRunning: [] });
  expect(result.stdout.text).toBe("before\n");
  for (const name of ["daemon", "orphan", "bare"]) {
    expect([name, isAlive(await pidFrom(guest, name))]).toEqual([name, false]);
  }
  expect((await exec(guest, "echo next")).stdout.text).toBe("next\n");
});

test("ends a command that stops its own supervisor", async () => {
  const guest = await startGuest();
  const result = await exec(guest, "echo $$ > self; kill -STOP $PPID; sleep 300", { timeoutMs: 10_000 });
  expect(result.status).toBe("timeout");
  expect(isAlive(await pidFrom(guest, "self"))).toBe(false);
});

test("ends what is left when a command kills its own supervisor", async () => {
  const guest = await startGuest();
  const result = await exec(guest, "echo $$ > self; kill -KILL $PPID; sleep 300");
  expect(result).toMatchObject({ status: "exited", exitCode: null, signal: "SIGKILL" });
  const pid = await pidFrom(guest, "self");
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 20_000);
  expect((await exec(guest, "echo next")).stdout.text).toBe("next\n");
});

test("ends a command that forks faster than it dies", async () => {
  const guest = await startGuest();
  // Everybody's processes are looked at: nobody else sleeps just as long.
  const sleep = `sleep ${randomInt(1_000_000, 10_000_000)}`;
  const bomb = `for i in 1 2 3 4 5 6 7 8; do (while :; do ${sleep} & sleep 0.005; done) & done; wait`;
  expect(await exec(guest, bomb, { timeoutMs: 500 })).toMatchObject({ status: "timeout" });
  const left = await exec(guest, `ps -eo args | grep -c '[s]${sleep.slice(1)}'`);
  expect(left.stdout.text).toBe("0\n");
});

test("cancellation ends every descendant and answers with the output so far", async () => {
  const guest = await startGuest();
  const source = new AbortController();
  const command = "echo so far; setsid bash -c 'echo $$ > daemon; sleep 300' & sleep 300";
  const params = { callId: "c", command, timeoutMs: 20_000, maxOutputChars: 1_000, background: false };
  const answer = guest.call("shell.exec", params, source.signal);
  const pid = await pidFrom(guest, "daemon");
  source.abort();
  expect(await answer).toMatchObject({ status: "cancelled", stdout: { text: "so far\n" } });
  expect(isAlive(pid)).toBe(false);
});

test("what a command leaves running lives on and is listed", async () => {
  const guest = await startGuest();
  const result = await exec(guest, "sleep 300 & until grep -q sleep /proc/$!/comm; do :; done; echo started");
  expect(result).toMatchObject({ status: "exited", exitCode: 0, stdout: { text: "started\n" } });
  expect(result.leftRunning).toEqual([{ pid: expect.any(Number), command: "sleep 300" }]);
  expect(isAlive(result.leftRunning[0]!.pid)).toBe(true);
  const loud = await exec(guest, "(while :; do echo noise || exit; sleep 0.01; done) & echo $! > loud");
  expect(loud.leftRunning.length).toBeGreaterThan(0);
  const pid = await pidFrom(guest, "loud");
  await delay(300);
  expect(isAlive(pid)).toBe(true);
});

test("waits for the last words of a process substitution", async () => {
  const guest = await startGuest();
  for (let round = 0; round < 10; round += 1) {
    expect((await exec(guest, "echo a > >(cat)")).stdout.text).toBe("a\n");
  }
});

test("a flood stays bounded: head and tail come back, the rest is in a file", async () => {
  const guest = await startGuest();
  const { stdout } = await exec(guest, "seq 1 1000000", { maxOutputChars: 1_000 });
  expect(stdout.text.length).toBeLessThanOrEqual(1_000);
  expect(stdout.text).toMatch(/^1\n2\n[\s\S]*characters cut[\s\S]*\n999999\n1000000\n$/u);
  expect(stdout.totalChars).toBe(6_888_896);
  expect(readFileSync(stdout.file ?? "", "utf8")).toHaveLength(6_888_896);
  const endless = await exec(guest, "yes", { timeoutMs: 5_000, maxOutputChars: 1_000 });
  expect(endless.status).toBe("timeout");
  expect(endless.stdout.totalChars).toBeGreaterThan(1_000_000);
  expect(readFileSync(endless.stdout.file ?? "").length).toBeLessThanOrEqual(64 * 1024 * 1024);
  const memory = /VmRSS:\s+(\d+)/u.exec(readFileSync(`/proc/${guest.process.pid}/status`, "utf8"));
  expect(Number(memory?.[1])).toBeLessThan(300_000);
});

test("bytes that are no text become valid text", async () => {
  const guest = await startGuest();
  const { stdout } = await exec(guest, String.raw`printf 'a\xff\xfe\x00b\xe2\x82'`);
  expect(stdout.text).toBe("a\uFFFD\uFFFD\0b\uFFFD");
  const cut = await exec(guest, "python3 -c 'print(chr(0x1F600) * 5000)'", { maxOutputChars: 501 });
  expect(Buffer.from(cut.stdout.text).toString()).toBe(cut.stdout.text);
});

test("sends output while the command runs, with the call's id", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "gate"), "");
  const answer = exec(guest, "echo one; echo two >&2; while [ -e gate ]; do sleep 0.01; done; echo three", {
    callId: "mine",
  });
  await vi.waitFor(() => expect(guest.output).toHaveLength(2), 20_000);
  expect(guest.output).toEqual(
    expect.arrayContaining([
      { callId: "mine", stream: "stdout", text: "one\n" },
      { callId: "mine", stream: "stderr", text: "two\n" },
    ]),
  );
  await exec(guest, "rm gate");
  expect((await answer).stdout.text).toBe("one\nthree\n");
});

test("commands run beside each other", async () => {
  const guest = await startGuest();
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      exec(guest, `touch here-${index}; while [ $(ls here-* | wc -l) -lt 20 ]; do sleep 0.01; done; echo ${index}`),
    ),
  );
  expect(results.map(({ stdout }) => stdout.text)).toEqual(results.map((_, index) => `${index}\n`));
});

test("a background process is read by cursor and killed", async () => {
  const guest = await startGuest();
  const command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2; setsid sleep 300 & sleep 300";
  const started = await exec(guest, command, { background: true });
  expect(started).toMatchObject({ status: "running", exitCode: null, processId: expect.any(String) });
  const processId = started.processId ?? "";
  const first = await guest.call("shell.output", { processId, cursor: 0, maxChars: 1_000, waitMs: 20_000 });
  expect(first).toEqual({ text: "one\n", cursor: 4, skippedChars: 0, isRunning: true, exitCode: null, signal: null });
  writeFileSync(join(guest.workspace, "go"), "");
  const second = await guest.call("shell.output", { processId, cursor: 4, maxChars: 1_000, waitMs: 20_000 });
  expect(second).toMatchObject({ text: "two\n", cursor: 8, isRunning: true });
  const killed = await guest.call("shell.kill", { processId, signal: "SIGTERM" });
  expect(killed).toMatchObject({ isRunning: false, exitCode: null, signal: "SIGTERM" });
  const again = await guest.call("shell.output", { processId, cursor: 0, maxChars: 3, waitMs: 0 });
  expect(again).toMatchObject({ text: "one", cursor: 3, isRunning: false });
});

test("a background flood keeps its latest part and says what is gone", async () => {
  const guest = await startGuest();
  const { processId = "" } = await exec(guest, "seq 1 600000; echo end", { background: true });
  const total = 4_088_895 + 4;
  await vi.waitFor(async () => {
    const { isRunning } = await guest.call("shell.output", { processId, cursor: total, maxChars: 10, waitMs: 100 });
    expect(isRunning).toBe(false);
  }, 10_000);
  const part = await guest.call("shell.output", { processId, cursor: 0, maxChars: 4_000_000, waitMs: 0 });
  expect(part.text.endsWith("600000\nend\n")).toBe(true);
  expect(part.text.length).toBeLessThan(1_300_000);
  expect(part.skippedChars + part.text.length).toBe(part.cursor);
  expect(part).toMatchObject({ exitCode: 0, cursor: total });
});

test("an unknown process id is a failure with a hint", async () => {
  const guest = await startGuest();
  const unknown = guest.call("shell.output", { processId: "nobody", cursor: 0, maxChars: 1, waitMs: 0 });
  await expect(unknown).rejects.toMatchObject({ code: -32050, data: { kind: "unknown_process", hint: /background/u } });
});
