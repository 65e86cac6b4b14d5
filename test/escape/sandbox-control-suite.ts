import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { SYSCALLS } from "../../src/sandbox/runtimes/seccomp/syscall-numbers.ts";
import { findProcess, type Inside, type Lab, newMarker, openLab } from "./bubblewrap-instances.ts";
import { CONTROL_ATTACKS } from "./sandbox-control-attacks.ts";

const COLUMN = process.arch === "arm64" ? 1 : 0;
const SECRET = `secret-${randomBytes(8).toString("hex")}`;

/** What attacks may use; a line of theirs stands at ATTACK. */
const PROGRAM = `
import ctypes, errno, json, os, resource, signal, socket, struct, subprocess, sys
given = json.loads(sys.argv[1])
NR = json.loads(sys.argv[2])
NEWUSER, NEWNS = 0x10000000, 0x20000
libc = ctypes.CDLL(None, use_errno=True)
children = []
class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(64)
vec = ctypes.byref(Vec(ctypes.addressof(buffer), 8))
def call(result):
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
def system(name, *args):
    # A bare number is 32 bits to ctypes, and the sixth goes over the stack, where the other half is whatever was there.
    return libc.syscall(NR[name], *[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args])
def need(fact):
    if not fact: raise OSError(0, "nothing")
def either(act, path):
    try: act(path)
    except OSError: act("/host" + path)
def read(path): either(lambda at: need(open(at).read()), path)
def connect(where, kind):
    with socket.socket(socket.AF_UNIX, kind) as line:
        line.connect(where)
        if kind == socket.SOCK_DGRAM: line.send(b"x")
def child():
    pid = os.fork()
    if pid == 0: signal.pause()
    children.append(pid)
    return pid
def ring(flags):
    setup = ctypes.create_string_buffer(256)
    struct.pack_into("I", setup, 8, flags)
    return call(system("io_uring_setup", 4, setup))
try:
    ATTACK
    print("done")
except OSError as error: print("refused", errno.errorcode.get(error.errno))
finally:
    for pid in children: os.kill(pid, 9)
`;

/** Sockets of the host for everybody, by path and by name. */
const SOCKETS = `
import os, socket, sys
folder, name = sys.argv[1:]
kept = []
for kind, where in ((socket.SOCK_STREAM, folder + "/stream"), (socket.SOCK_DGRAM, folder + "/datagram"), (socket.SOCK_STREAM, "\\0" + name), (socket.SOCK_DGRAM, "\\0" + name + "d")):
    line = socket.socket(socket.AF_UNIX, kind); line.bind(where); kept.append(line)
    if kind == socket.SOCK_STREAM: line.listen()
    if where[0] == "/": os.chmod(where, 0o777)
print("ready", flush=True)
sys.stdin.read()
`;

const VICTIM = `import socket, sys, time
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind("\\0" + sys.argv[1]); b.listen()
open("file", "w").write("theirs"); open("port", "w").write(str(a.getsockname()[1])); time.sleep(1000)`;

/** Each attack twice: in a sandbox as it is, and without exactly what stops it. */
export function defineControlSuite(identity: "root" | "user"): void {
  let host: HostSide;
  let hostProcess: ChildProcess | undefined;
  const places = new Map<string, Promise<Place>>();
  beforeAll(async () => {
    process.env["OWNER_SECRET"] = SECRET;
    host = await openHostSide();
  });
  beforeEach(() => {
    hostProcess = spawn("sleep", ["1000"], { stdio: "ignore" });
  });
  afterEach(() => hostProcess?.kill("SIGKILL"));
  afterAll(async () => {
    await Promise.all([...places.values()].map(async (place) => await (await place).lab.close()));
    await host.close();
  });

  const attack = async (code: string, off: readonly Control[]): Promise<string> => {
    const key = off.join();
    const opened = places.get(key) ?? openInstance(off);
    places.set(key, opened);
    const { attacker, facts } = await opened;
    const given = { ...host.facts, ...facts, hostPid: hostProcess?.pid, serverPid: process.pid, secret: SECRET };
    const numbers = Object.fromEntries(Object.entries(SYSCALLS).map(([name, both]) => [name, both[COLUMN]]));
    const program = PROGRAM.replace("ATTACK", () => code);
    const { stdout, stderr } = await attacker.run(
      "python3",
      "-I",
      "-c",
      program,
      JSON.stringify(given),
      JSON.stringify(numbers),
    );
    return `${stdout}${stderr}`.trim();
  };

  describe.each(Object.entries(CONTROL_ATTACKS))(`%s, as ${identity}:`, (_class, attacks) => {
    it.each(Object.entries(attacks))("%s is refused", async (_name, { code }) => {
      expect(await attack(code, [])).toMatch(/^refused \w+$/u);
    });

    it.each(Object.entries(attacks))("%s succeeds without its control", async (_name, { code, off }) => {
      expect(await attack(code, off)).toBe("done");
    });
  });
}

interface Place {
  readonly lab: Lab;
  readonly attacker: Inside;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A server's data folder, a sandbox that attacks, and one that has something to lose. */
async function openInstance(off: readonly Control[]): Promise<Place> {
  const lab = await openLab({ off });
  const canaryFile = join(lab.dataFolder, "canary.txt");
  await writeFile(canaryFile, SECRET, { mode: 0o600 });
  const [attacker, victim] = [await lab.start(), await lab.start()];
  const victimName = newMarker();
  const offer = 'python3 -I -c "$0" "$@" > /dev/null 2>&1 & until [ -s port ]; do :; done; cat port';
  const { stdout: port } = await victim.run("bash", "-c", offer, VICTIM, victimName);
  const facts = {
    dataFolder: lab.dataFolder,
    canaryFile,
    recordFile: join(lab.dataFolder, "bubblewrap", "servers", `${lab.options.serverId}.json`),
    victimFile: join(victim.spec.folder, "files", "workspace", "file"),
    victimPid: Number((await findProcess(victimName))?.slice("/proc/".length)),
    victimPort: Number(port),
    victimName,
  };
  return { lab, attacker, facts };
}

interface HostSide {
  readonly facts: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

async function openHostSide(): Promise<HostSide> {
  const socketFolder = await mkdtemp(join(tmpdir(), "owlclaw-sockets-"));
  // Whoever sees it may use it: what keeps a sandbox away is not a permission.
  await chmod(socketFolder, 0o755);
  const socketName = newMarker();
  const sockets = spawn("python3", ["-I", "-c", SOCKETS, socketFolder, socketName], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(sockets.stdout, "data");
  return {
    facts: { socketFolder, socketName },
    close: async () => {
      sockets.kill("SIGKILL");
      await rm(socketFolder, { recursive: true });
    },
  };
}
