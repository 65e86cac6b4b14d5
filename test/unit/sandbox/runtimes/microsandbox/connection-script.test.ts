import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { openGuestSocket, creditedStream } from "../../../../../src/sandbox/runtimes/microsandbox/host-socket.ts";
import { CONNECTION_SCRIPT } from "../../../../../src/sandbox/runtimes/microsandbox/launch-script.ts";

/**
 * The connection of the launcher over a real socket of this machine. The kernel of a microVM gives a call up when its time is
 * over, and a busy host may have taken it by then: so do the first calls here. Whatever arrives is sent back.
 */
const CALLER = `
import json, os, socket, struct, sys, threading, time
path, given_up, given = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
times = []
def system(name, *args):
    times.append(struct.unpack("ll", args[3])[0])

class Vsock(socket.socket):
    def __init__(self, family):
        super().__init__(socket.AF_UNIX)
    def connect(self, address):
        super().connect(path)
        if len(times) <= given_up:
            raise TimeoutError(110, "Connection timed out")
socket.socket = Vsock
exec(sys.argv[4])
connection = Connection(5001)
connection.socket.sendall(b"\\0")
inward = os.pipe()
in_thread(connection.receive, lambda piece: os.write(inward[1], piece), lambda: os.close(inward[1]))
send_all(lambda: os.read(inward[0], 65536), connection)
print(json.dumps(times))
`;

function call(path: string, givenUp: number, connectSeconds: number): ChildProcessWithoutNullStreams {
  const given = { connectSeconds, windowBytes: 65_536, creditBytes: 16_384, pieceBytes: 4096 };
  const args = ["-c", CALLER, path, String(givenUp), JSON.stringify(given), CONNECTION_SCRIPT];
  return spawn("python3", args);
}

async function openPath(): Promise<Awaited<ReturnType<typeof openGuestSocket>>> {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-line-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const line = await openGuestSocket(folder);
  onTestFinished(async () => await line.close());
  return line;
}

test("a launcher whose first calls were given up after the host had taken them calls again, and is heard", async () => {
  const line = await openPath();
  const launcher = call(line.path, 2, 60);
  const [said, told] = [text(launcher.stdout), text(launcher.stderr)];
  const { input, output } = creditedStream(await line.connected);
  input.write("what was said");
  const [back] = (await once(output, "data")) as [Buffer];
  expect(back.toString()).toBe("what was said");
  input.end();
  // The kernel is asked for the whole minute each time; by itself it gives up after two seconds.
  expect(JSON.parse(await said)).toEqual([60, 60, 60]);
  expect((await told).match(/^launcher: TimeoutError\(110, 'Connection timed out'\)$/gm)).toHaveLength(2);
});

test("one that nobody hears ends when its time is over, and says why", async () => {
  const line = await openPath();
  const launcher = call(line.path, 1000, 0);
  const told = text(launcher.stderr);
  const [code] = (await once(launcher, "exit")) as [number];
  expect(code).toBe(1);
  expect(await told).toContain("launcher: TimeoutError(110, 'Connection timed out')");
});
