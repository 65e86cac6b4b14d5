import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { freePort } from "../services/free-port.ts";
import { startGuest, type Guest } from "./guest-process.ts";
import { isAlive } from "./is-alive.ts";

const exec = (guest: Guest, command: string, background = false) =>
  guest.call("shell.exec", { callId: "c", command, timeoutMs: 20_000, maxOutputChars: 1_000, background });

function childrenOf(pid: number | undefined): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name) && parentOf(name) === pid)
    .map(Number);
}

function descendantsOf(pid: number | undefined): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(/\) . (\d+) /u.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
  } catch {
    return undefined;
  }
}

async function leaveProcesses(guest: Guest): Promise<number[]> {
  await exec(guest, "setsid bash -c 'echo $$ > daemon; exec sleep 300' > /dev/null 2>&1 &");
  await exec(guest, "echo $$ > background; exec sleep 300", true);
  await guest.call("code.run", {
    callId: "p",
    language: "python",
    code: "import os; open('python', 'w').write(f'{os.getpid()}\\n')",
    timeoutMs: 9_000,
    maxOutputChars: 100,
  });
  const paths = ["daemon", "background", "python"].map((name) => join(guest.workspace, name));
  await vi.waitFor(
    () => expect(paths.every((path) => existsSync(path) && readFileSync(path, "utf8") !== "")).toBe(true),
    20_000,
  );
  return paths.map((path) => Number(readFileSync(path, "utf8")));
}

test("says what it is", async () => {
  const guest = await startGuest();
  expect(await guest.call("guest.hello", {})).toEqual({ version: "1", languages: ["python", "node"], diagnostics: [] });
});

test("ends with everything it started when its host is gone", async () => {
  const guest = await startGuest();
  const pids = await leaveProcesses(guest);
  expect(pids.every(isAlive)).toBe(true);
  const exited = once(guest.process, "exit");
  guest.process.stdin.end();
  expect(await exited).toEqual([0, null]);
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), 20_000);
});

test("when it is killed, everything it started ends too", async () => {
  const guest = await startGuest();
  await leaveProcesses(guest);
  const pids = descendantsOf(guest.process.pid);
  expect(pids.length).toBeGreaterThanOrEqual(6);
  guest.process.kill("SIGKILL");
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), 20_000);
});

test("survives the death of its process spawner: what runs goes on, and new commands start", async () => {
  const guest = await startGuest();
  await exec(guest, "true");
  const { processId = "" } = await exec(guest, "while [ ! -e go ]; do sleep 0.01; done; echo went", true);
  const [spawner = 0] = childrenOf(guest.process.pid);
  process.kill(spawner, "SIGKILL");
  await vi.waitFor(() => expect(isAlive(spawner)).toBe(false), 20_000);
  for (let round = 0; round < 5; round += 1) {
    expect((await exec(guest, "sleep 300 & echo ok")).stdout.text).toBe("ok\n");
  }
  await exec(guest, "touch go");
  const output = await guest.call("shell.output", { processId, cursor: 0, maxChars: 10, waitMs: 5_000 });
  expect(output.text).toBe("went\n");
});

test("requests that break the contract get an error, and the guest goes on", async () => {
  const guest = await startGuest();
  await expect(guest.callRaw("file.read", null)).rejects.toMatchObject({ code: -32602 });
  await expect(guest.callRaw("file.read", [1, 2])).rejects.toMatchObject({ code: -32602 });
  await expect(guest.callRaw("constructor", {})).rejects.toMatchObject({ code: -32601 });
  await expect(guest.callRaw("no.such", {})).rejects.toMatchObject({ code: -32601 });
  expect((await exec(guest, "echo fine")).stdout.text).toBe("fine\n");
});

const PIPES_OF_A_SUPERVISOR = 6;

test("many calls leave no descriptors and no processes behind", async () => {
  const guest = await startGuest();
  const run = (command: string, options: object = {}) =>
    guest.call("shell.exec", {
      callId: "c",
      command,
      timeoutMs: 9_000,
      maxOutputChars: 100,
      background: false,
      ...options,
    });
  const times = (count: number, action: () => Promise<unknown>) => Promise.all(Array.from({ length: count }, action));
  const code = (language: "python" | "node", text: string, timeoutMs = 9_000) =>
    guest.call("code.run", { callId: "p", language, code: text, timeoutMs, maxOutputChars: 100 });
  const burst = async () => {
    await times(20, () => run("echo x"));
    await times(4, () => run("sleep 300", { timeoutMs: 50 }));
    await times(4, () => run("cat", { stdin: "x" }));
    await times(4, () => run("echo x", { background: true }));
    await times(4, () => run("sleep 0.1 &"));
    await code("python", "import os; os._exit(1)");
    await code("python", "while True: pass", 50);
    await code("node", "process.abort()");
  };
  const count = () => ({
    descriptors: readdirSync(`/proc/${guest.process.pid}/fd`).length,
    processes: descendantsOf(guest.process.pid).length,
  });
  // The spawner and its two spare supervisors, and what they and the guest itself have open: newer Nodes have more.
  const atRest = (maxDescriptors: number): Promise<number> =>
    vi.waitFor(() => {
      const { descriptors, processes } = count();
      expect(processes).toBeLessThanOrEqual(3);
      expect(descriptors).toBeLessThanOrEqual(maxDescriptors);
      return descriptors;
    }, 20_000);
  await burst();
  const before = await atRest(80);
  for (let round = 0; round < 4; round += 1) await burst();
  await atRest(before + 2 * PIPES_OF_A_SUPERVISOR);
});

test("forwards the proxy's port to the socket outside", async () => {
  const socketPath = `/tmp/guest-egress-${process.pid}.sock`;
  const outside = createServer((client) => client.on("data", (chunk) => client.end(`echo ${chunk.toString()}`)));
  outside.listen(socketPath);
  try {
    const port = await freePort();
    const guest = await startGuest({ env: { OWLCLAW_EGRESS: socketPath, OWLCLAW_EGRESS_PORT: String(port) } });
    await guest.call("guest.hello", {});
    const client = connect(port, "127.0.0.1");
    client.end("hello");
    const [answer] = await once(client, "data");
    expect(String(answer)).toBe("echo hello");
    client.destroy();
  } finally {
    outside.close();
    rmSync(socketPath, { force: true });
  }
});
