import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { type Called, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { type Inside, openInside, textOf } from "./sandbox-lab.ts";
import type { TestRuntime } from "./test-runtime.ts";

const MAX_SERVER_GROWTH_MB = 250;

/** Where a workspace has a disk of its own, the kernel ends them. */
const FILLS = [
  ["files", "for n in 1 2 3; do fallocate -l 900M part$n; done; sleep 60"],
  [
    "files that were removed and are still open",
    "exec 3> a 4> b 5> c; for n in 3 4 5; do fallocate -l 900M /proc/self/fd/$n; done; rm a b c; sleep 60",
  ],
  [
    "files that a thread's child has open",
    `python3 -c "
import os, threading, time
def child():
    if os.fork() == 0:
        kept = [os.open('t%d' % n, os.O_CREAT | os.O_RDWR) for n in range(3)]
        for n, fd in enumerate(kept): os.unlink('t%d' % n); os.posix_fallocate(fd, 0, 900 << 20)
        time.sleep(60)
    time.sleep(60)
threading.Thread(target=child).start()
"`,
  ],
  [
    "a folder that cannot be read",
    "mkdir dark && cd dark && chmod 0300 . && for n in 1 2 3; do fallocate -l 900M part$n; done; sleep 60",
  ],
  [
    "a folder without any right",
    "mkdir dark && cd dark && for n in 1 2 3; do fallocate -l 900M part$n; done; chmod 0 ../dark; sleep 60",
  ],
  ["empty files", "python3 -c \"for n in range(140_000): open('e%d' % n, 'w').close()\"; sleep 60"],
] as const;

/** What one sandbox does to the machine and to others. */
export function defineFloodSuite(runtime: TestRuntime): void {
  let server: Server;
  let client: Client;
  let witness: Inside;

  beforeAll(async () => {
    server = new Server(makePlace(runtime.account()), { sandbox: { maxPerPrincipal: 50, ...runtime.settings() } });
    client = await connectHttp(await server.url());
    witness = await openInside(client);
    await witness.python("kept = 41");
  });

  function serverMemoryMb(): number {
    const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
  }

  function serverDescriptors(): number {
    return readdirSync(`/proc/${server.child.pid}/fd`).length;
  }

  /** The server is no bigger than it may be and another sandbox answers for as long as the attack runs. */
  async function whileOthersWork<T>(attack: Promise<T>): Promise<T> {
    const before = serverMemoryMb();
    let [answers, largest] = [0, 0];
    const over = new AbortController();
    const watched = attack.finally(() => over.abort());
    watched.catch(() => undefined);
    while (!over.signal.aborted || answers === 0) {
      const { structuredContent } = await witness.call("code_run", { code: "kept + 1" });
      expect(structuredContent).toMatchObject({ value: "42", session_created: false });
      expect(structuredContent?.["sandbox_restarted"]).toBeUndefined();
      answers += 1;
      largest = Math.max(largest, serverMemoryMb());
      await delay(10);
    }
    expect(largest - before).toBeLessThan(MAX_SERVER_GROWTH_MB);
    return watched;
  }

  /** Waits until the sandbox answers again. */
  async function answerOf(inside: Inside): Promise<string> {
    const alive = async (): Promise<string> => {
      const said = await inside.sh("echo alive");
      if (said !== "alive\n") throw new Error(`it said ${said}`);
      return said;
    };
    return vi.waitFor(alive, { timeout: 20_000 });
  }

  describe("what takes everything takes it from its own sandbox alone:", () => {
    test.each([
      ["bash", { name: "shell_exec", args: { command: "b() { b | b & }; b; sleep 60", timeout_seconds: 1 } }],
      [
        "python",
        {
          name: "code_run",
          args: { code: "import os\nwhile True:\n try: os.fork()\n except OSError: pass", timeout_seconds: 1 },
        },
      ],
      [
        "new sessions",
        {
          name: "shell_exec",
          args: { command: "while :; do setsid sleep 1000 & done 2> /dev/null", timeout_seconds: 1 },
        },
      ],
    ])("a fork bomb of %s", async (_what, { name, args }) => {
      const inside = await openInside(client);
      await whileOthersWork(inside.call(name, args));
      const most = runtime.processes(server).length;
      expect(most).toBeLessThan(2 * 256);
      expect(await answerOf(inside)).toBe("alive\n");
    });

    test.for([
      ["one process", "python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 24))'"],
      [
        "many processes",
        "for i in $(seq 20); do python3 -c 'a = bytearray(100 << 20); import time; time.sleep(1)' & done; wait",
      ],
      [
        "shared memory and /tmp",
        "for i in 1 2 3; do head -c 900M /dev/zero > /tmp/$i; done; head -c 100M /dev/zero > /dev/shm/x",
      ],
    ])("a memory hog of %s", async ([what, command], context) => {
      if (runtime.limits.memory === "process" && what === "many processes")
        context.skip("without a group, an ordinary user's memory is limited for each process alone: docs/security.md");
      const inside = await openInside(client);
      await whileOthersWork(inside.call("shell_exec", { command, timeout_seconds: 20 }));
      await inside.call("shell_exec", { command: "rm -f /tmp/[123] /dev/shm/x" });
      expect(await answerOf(inside)).toBe("alive\n");
    });

    test.for([
      [
        "the workspace",
        "fallocate -l 3G big || fallocate -l 1900M big; head -c 300M /dev/zero > rest",
        "/workspace/rest",
        300,
      ],
      ["/tmp", "head -c 700M /dev/zero > /tmp/big", "/tmp/big", 700],
      ["/dev/shm", "head -c 100M /dev/zero > /dev/shm/big", "/dev/shm/big", 100],
    ] as const)("a fill of %s", async ([what, command, file, wantedMb], context) => {
      const inside = await openInside(client);
      if (runtime.limits.workspace === "watch" && what === "the workspace")
        context.skip(
          "an ordinary user's workspace is limited by a watch, which is late: the next test, docs/security.md",
        );
      await whileOthersWork(inside.call("shell_exec", { command }));
      const size = Number(await inside.sh(`stat -c %s ${file} || echo 0`));
      expect(size).toBeLessThan(wantedMb * 1024 * 1024);
      expect(await answerOf(inside)).toBe("alive\n");
      expect((await witness.call("file_write", { path: "w", content: "room" })).isError).toBeUndefined();
    });

    test.each(runtime.limits.workspace === "disk" ? [] : FILLS)(
      "a fill of the workspace with %s, where nothing but a watch limits it",
      async (_what, command) => {
        const inside = await openInside(client);
        const answer = await whileOthersWork(inside.call("shell_exec", { command, timeout_seconds: 50 }));
        expect(textOf(answer)).toContain("it wrote more than its flavor allows");
      },
    );

    test.each([
      ["files", "import os\nkept = []\nwhile True: kept.append(os.open('/dev/null', os.O_RDONLY))"],
      ["sockets", "import socket\nkept = []\nwhile True: kept.append(socket.socketpair())"],
      ["pipes", "import os\nkept = []\nwhile True: kept.append(os.pipe())"],
    ])("running out of descriptors with %s", async (_what, code) => {
      const inside = await openInside(client);
      const before = serverDescriptors();
      expect(textOf(await whileOthersWork(inside.call("code_run", { code })))).toContain("Too many open files");
      // The server itself opens some for a moment: it starts sandboxes for the pool and measures workspaces.
      await expect.poll(serverDescriptors).toBeLessThan(before + 20);
      expect(await answerOf(inside)).toBe("alive\n");
    });

    test.each([
      ["stdout", { command: "yes | head -c 1500M" }],
      ["stderr and stdout", { command: "yes err >&2 & yes out & wait" }],
      ["one endless line", { command: "tr '\\\\0' x < /dev/zero" }],
      ["the background", { command: "yes", background: true }],
    ])("a flood of output on %s", async (_what, args) => {
      const inside = await openInside(client);
      const answer = await whileOthersWork(inside.call("shell_exec", { timeout_seconds: 1, ...args }));
      expect(JSON.stringify(answer).length).toBeLessThan(200_000);
      expect(await answerOf(inside)).toBe("alive\n");
      await inside.call("sandbox_destroy");
    });

    describe("where the limit on results is lifted,", () => {
      let inside: Inside;
      beforeAll(async () => {
        const settings = { sandbox: runtime.settings(), tools: { maxResultChars: 20_000_000 } };
        inside = await openInside(await connectHttp(await new Server(makePlace(runtime.account()), settings).url()));
      });

      test.each([
        ["stdout", "yes | head -c 3000000", { stdout: 3_000_000 }],
        [
          "stderr and stdout",
          "yes err | head -c 2000000 >&2 & yes out | head -c 2000000 & wait",
          { stdout: 2_000_000, stderr: 2_000_000 },
        ],
        ["one endless line", "head -c 3000000 /dev/zero | tr '\\0' x", { stdout: 3_000_000 }],
      ])("a flood of output on %s comes whole", async (_what, command, lengths) => {
        const answer = await inside.call("shell_exec", { command, timeout_seconds: 30 });
        expect(lengthsOf(answer, Object.keys(lengths))).toEqual(lengths);
      });

      test("a flood of code's output comes whole", async () => {
        const answer = await inside.call("code_run", { code: "for _ in range(3000): print('x' * 999)" });
        expect(lengthsOf(answer, ["stdout"])).toEqual({ stdout: 3_000_000 });
      });
    });

    test("a flood of code's output with progress wanted", async () => {
      const inside = await openInside(client);
      const flood = client.callTool(
        {
          name: "code_run",
          arguments: { session_id: inside.id, code: "while True: print('x' * 1000)", timeout_seconds: 1 },
        },
        { onprogress: () => undefined },
      );
      await whileOthersWork(flood);
      expect(await answerOf(inside)).toBe("alive\n");
    });
  });

  describe("what stays behind after a time-out:", () => {
    let mark = 70_000;
    const leave = (seconds: number): string => `
setsid nohup sleep ${seconds} > /dev/null 2>&1 &
(setsid sh -c '(setsid sleep ${seconds} &) &' &)
env -i setsid python3 -c 'import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 100); os.execv("/bin/sleep", ["sleep", "${seconds}"])' &
trap '' TERM HUP INT; sleep ${seconds}`;
    const PYTHON = (command: string): string =>
      `import subprocess\nsubprocess.run(["bash", "-c", ${JSON.stringify(command)}])`;
    const NODE = (command: string): string =>
      `const { spawnSync } = await import("node:child_process"); spawnSync("bash", ["-c", ${JSON.stringify(command)}]);`;

    test.concurrent.each([
      ["shell_exec", (command: string) => ({ command })],
      ["code_run", (command: string) => ({ code: PYTHON(command), language: "python" })],
      ["code_run", (command: string) => ({ code: NODE(command), language: "node" })],
    ])("no daemon, double fork or zombie of %s (%#)", async (name, argsOf) => {
      const inside = await openInside(client);
      const seconds = String((mark += 1));
      const left = (): string[] =>
        runtime
          .processes(server)
          .filter(({ command }) => command === `sleep ${seconds}`)
          .map(({ state }) => state);
      const running = inside.call(name, { ...argsOf(leave(Number(seconds))), timeout_seconds: 8 });
      await vi.waitFor(() => expect(left()).toHaveLength(4), { timeout: 8000, interval: 100 });
      const answer = await running;
      expect(answer.isError).toBe(true);
      expect(textOf(answer)).toContain('"timeout"');
      expect(textOf(answer)).not.toContain("sandbox_restarted");
      expect(left()).toEqual([]);
      await vi.waitFor(
        () => expect(runtime.processes(server).filter(({ state }) => state === "Z")).toEqual([]),
        20_000,
      );
    });

    test.concurrent.each([
      ["shell_exec", { command: "timeout -s KILL 2 bash leave.sh; true" }],
      [
        "code_run",
        {
          language: "python",
          code: `import subprocess
try: subprocess.run(["bash", "leave.sh"], timeout=2)
except subprocess.TimeoutExpired: pass`,
        },
      ],
      [
        "code_run",
        {
          language: "node",
          code: 'const { spawnSync } = await import("node:child_process"); spawnSync("bash", ["leave.sh"], { timeout: 2000, killSignal: "SIGKILL", stdio: "ignore" });',
        },
      ],
    ])("daemons of %s (%#) would stay if the command alone were ended", async (name, args) => {
      const inside = await openInside(client);
      const seconds = (mark += 1);
      await inside.call("file_write", { path: "leave.sh", content: leave(seconds) });
      const answer = await inside.call(name, { ...args, timeout_seconds: 30 });
      expect(JSON.stringify(answer.structuredContent?.["left_running"])).toContain(`sleep ${seconds}`);
      const left = (): unknown[] => runtime.processes(server).filter(({ command }) => command === `sleep ${seconds}`);
      await vi.waitFor(() => expect(left().length).toBeGreaterThanOrEqual(3), { timeout: 10_000 });
      await inside.call("sandbox_destroy");
      expect(left()).toEqual([]);
    });

    test("zombies of a program that never waits are nobody's burden", async () => {
      const inside = await openInside(client);
      await inside.sh("for i in $(seq 100); do (sleep 0 & exec sleep 0 &) ; done; sleep 0.1");
      await vi.waitFor(
        () => expect(runtime.processes(server).filter(({ state }) => state === "Z")).toEqual([]),
        20_000,
      );
    });
  });
}

function lengthsOf({ structuredContent }: Called, names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, String(structuredContent?.[name]).length]));
}
