import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SYSCALLS, syscallNumber, type SyscallName } from "../../src/sandbox/runtimes/seccomp/syscall-numbers.ts";
import { type Inside, type Lab, openLab } from "./bubblewrap-instances.ts";

const ARCHITECTURE = process.arch === "arm64" ? "arm64" : "x64";

/** Attempts that need arguments; each prints `done` or the number of the error. */
const ATTACKS: Readonly<Record<string, string>> = {
  "tracing another process": "child(); call(libc.ptrace(16, pid, 0, 0))",
  "reading another process's memory": "child(); call(system('process_vm_readv', pid, vec, 1, vec, 1, 0))",
  "a ring of io_uring": "call(system('io_uring_setup', 4, ctypes.create_string_buffer(256)))",
  "asynchronous I/O": "call(system('io_setup', 1, ctypes.byref(ctypes.c_ulong())))",
  "a keyring": "call(system('keyctl', 1, 0, 0, 0, 0))",
  "a key of the kernel": "call(system('add_key', b'user', b'name', b'data', 4, -3))",
  "page faults in user space": "call(system('userfaultfd', 1))",
  "a netlink socket beyond routes": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)",
  "a user namespace by unshare": "call(libc.unshare(0x10000000))",
  "a user namespace by clone": "r = system('clone', 0x10000000 | 17, 0, 0, 0, 0); r == 0 and os._exit(0); call(r)",
  "another personality": "call(libc.personality(0x0040000))",
  "typing into the terminal":
    "m, s = os.openpty(); os.setsid(); fcntl.ioctl(s, 0x540e, 0); fcntl.ioctl(s, 0x5412, b'x')",
};

const PREAMBLE = `
import ctypes, fcntl, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
NR = ${JSON.stringify(Object.fromEntries(Object.keys(SYSCALLS).map((name) => [name, numberOf(name)]))).replaceAll(
  "null",
  "None",
)}
pid = 0
buffer = ctypes.create_string_buffer(64)
class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
vec = ctypes.byref(Vec(ctypes.addressof(buffer), 8))
def child():
    global pid
    pid = os.fork()
    if pid == 0:
        signal.pause()
def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
def system(name, *args):
    # A bare number is 32 bits to ctypes, and the sixth goes over the stack, where the other half is whatever was there.
    return libc.syscall(NR[name], *[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args])
try:
    ATTEMPT
    print("done")
except OSError as error:
    print(error.errno)
finally:
    if pid > 0: os.kill(pid, 9)
`;

describe("system calls", () => {
  let filtered: Lab;
  let open: Lab;
  let inside: Inside;
  let unfiltered: Inside;
  beforeAll(async () => {
    filtered = await openLab();
    open = await openLab({ off: ["seccomp", "nested-namespaces"] });
    [inside, unfiltered] = await Promise.all([filtered.start(), open.start()]);
  });
  afterAll(async () => await Promise.all([filtered?.close(), open?.close()]));

  it.each(Object.entries(ATTACKS))("%s is refused, and possible without the filter", async (_name, attempt) => {
    const code = PREAMBLE.replace("ATTEMPT", attempt);
    const [kept, broken] = [await inside.python(code), await unfiltered.python(code)];
    expect({ kept: kept.stdout.trim(), broken: broken.stdout.trim(), errors: broken.stderr }).toEqual({
      kept: expect.stringMatching(/^(1|38|97)$/),
      broken: "done",
      errors: "",
    });
  });

  it("for sockets make the four families that programs use, and without the filter whatever the kernel has", async () => {
    const attempt = `
made = set()
for family in range(46):
    for kind in (1, 2, 3, 5):
        try: made.add(socket.socket(family, kind).family.real)
        except OSError: pass
print(sorted(made))`;
    const code = PREAMBLE.replace("    ATTEMPT", attempt.replaceAll("\n", "\n    "));
    const [kept, broken] = [await inside.python(code), await unfiltered.python(code)];
    expect(kept.stdout).toBe("[1, 2, 10, 16]\ndone\n");
    expect(broken.stdout).not.toBe(kept.stdout);
  });

  it("for pairs of sockets know no other families than for sockets", async () => {
    const attempt = `
errors = set()
for family in set(range(46)) - {1, 2, 10, 16}:
    try: errors.add(call(libc.socketpair(family, 3, 9, buffer)))
    except OSError as error: errors.add(error.errno)
print(sorted(errors))`;
    const code = PREAMBLE.replace("    ATTEMPT", attempt.replaceAll("\n", "\n    "));
    const [kept, broken] = [await inside.python(code), await unfiltered.python(code)];
    expect(kept.stdout).toBe("[97]\ndone\n");
    expect(broken.stdout).not.toBe(kept.stdout);
  });

  it("of every refused name come back with an error and leave the process whole", async () => {
    const refused = (Object.keys(SYSCALLS) as SyscallName[]).filter(
      (name) => !/^(open|openat|creat|clone|ioctl|socket|socketpair)$|chmod|mknod|personality|unshare/.test(name),
    );
    const attempt = `print(*[name for name in ${JSON.stringify(refused)} if NR[name] is not None and (system(name, -1, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() not in (1, 38))])`;
    expect((await inside.python(PREAMBLE.replace("ATTEMPT", attempt))).stdout).toBe("\ndone\n");
  });

  it("that programs live on still work: threads, processes, pipes, terminals, interfaces", async () => {
    const worked = await inside.python(`
import multiprocessing, os, pty, socket, subprocess, threading
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
print(subprocess.check_output(["true"]), socket.if_nameindex(), len(os.openpty()))
with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(abs, [-1, -2]))
`);
    expect(worked).toMatchObject({ stdout: "b'' [(1, 'lo')] 2\n[1, 2]\n", code: 0 });
    const node = await inside.run(
      "node",
      "-e",
      "new Worker('', { eval: true }).on('exit', (c) => console.log(c, Object.keys(os.networkInterfaces()).length < 2))".replace(
        "new Worker",
        "const os = require('os'); const { Worker } = require('worker_threads'); new Worker",
      ),
    );
    expect(node).toMatchObject({ stdout: "0 true\n", code: 0 });
  });
});

function numberOf(name: string): number | null {
  return name in SYSCALLS ? syscallNumber(name as SyscallName, ARCHITECTURE) : null;
}
