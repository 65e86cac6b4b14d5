import { afterEach, describe, expect, it } from "vitest";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { type Inside, type Lab, MIB, openLab } from "./bubblewrap-instances.ts";

const RESOURCES = { cpus: 1, memoryBytes: 256 * MIB, maxPids: 64, diskBytes: 16 * MIB };

/** Each takes twice as much as it may and no more: without the control it succeeds, and the machine must bear that. */
interface LimitAttack {
  readonly control: Control;
  /** Python; prints how much it got. */
  readonly code: string;
  readonly wanted: number;
  /** The most it may get. */
  readonly most: number;
}

const bombOf = (start: string): string => `
import os, signal, subprocess, threading, time
got = 0
try:
    while got < 150:
        ${start}
        got += 1
except (OSError, RuntimeError): pass
print(got, flush=True)
`;

/** Many files: one alone may have a limit of its own. */
const fillOf = (folder: string): string => `
import os
os.makedirs("${folder}", exist_ok=True)
got = 0
try:
    while got < 32:
        with open(f"${folder}/{got}", "wb", buffering=0) as file:
            if file.write(b"x" * (1 << 20)) < 1 << 20: break
        got += 1
except OSError: pass
print(got)
`;

const openOf = (open: string): string => `
import os, socket
kept, got = [], 0
try:
    while got < 8000:
        kept.append(${open})
        got += 1
except OSError: pass
print(got)
`;

const BOMB = { control: "control-groups", wanted: 150, most: RESOURCES.maxPids } as const;
const FILL = { control: "tmp-size", wanted: 32, most: 16 } as const;
const DESCRIPTORS = { control: "descriptor-limit", wanted: 8000, most: 4096 } as const;

const MEMORY = { control: "control-groups", wanted: 400, most: 260 } as const;

const memoryOf = (take: string): string => `
import ctypes, mmap
kept, got = [], 0
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_void_p
def mapped(size, flags):
    try: area = mmap.mmap(-1, size, flags=flags | mmap.MAP_ANONYMOUS)
    except OSError: raise MemoryError
    for page in range(0, size, 4096): area[page] = 1
    return area
def heap(size):
    start = libc.sbrk(ctypes.c_ssize_t(size))
    if start in (None, ctypes.c_void_p(-1).value): raise MemoryError
    ctypes.memset(start, 1, size)
try:
    while got < 400:
        kept.append(${take})
        got += 20
        print(got, flush=True)
except MemoryError: pass
`;

/** Each child holds 50 MB and says so; who says nothing was ended. */
const MEMORY_OF_MANY = `
import os, signal
children = []
for _ in range(8):
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        kept = b"x" * (50 << 20)
        os.write(tell, b"h")
        signal.pause()
    os.close(tell)
    os.read(told, 1)
    children.append(child)
print(50 * sum(os.waitpid(child, os.WNOHANG)[0] == 0 for child in children))
`;

const DISK = { ...FILL, control: "disk-image" } as const;

/** An ordinary user has none of these limits, or has them late: docs/security.md. */
const ROOT_ATTACKS: Readonly<Record<string, LimitAttack>> = {
  "memory of many processes": { ...MEMORY, code: MEMORY_OF_MANY },
  "memory shared between processes": { ...MEMORY, code: memoryOf("mapped(20 << 20, mmap.MAP_SHARED)") },
  "filling the workspace": { ...DISK, code: fillOf("/workspace") },
  "filling the workspace from folders below": { ...DISK, code: fillOf("/workspace/a/b") },
  "reserving the workspace": {
    ...DISK,
    code: `
import os
got = 0
try:
    for got in range(1, 33): os.posix_fallocate(os.open(f"r{got}", os.O_CREAT | os.O_RDWR), 0, 1 << 20)
except OSError: got -= 1
print(got)
`,
  },
};

const LIMIT_ATTACKS: Readonly<Record<string, LimitAttack>> = {
  "memory of one process": { ...MEMORY, code: memoryOf("b'x' * (20 << 20)") },
  "memory mapped by one process": { ...MEMORY, code: memoryOf("mapped(20 << 20, mmap.MAP_PRIVATE)") },
  "memory of one process's heap": { ...MEMORY, code: memoryOf("heap(20 << 20)") },
  "a bomb of forks": { ...BOMB, code: bombOf("if os.fork() == 0: signal.pause()") },
  "a bomb of new sessions": { ...BOMB, code: bombOf("subprocess.Popen(['sleep', '1000'], start_new_session=True)") },
  "a bomb of threads": {
    ...BOMB,
    code: bombOf("threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"),
  },
  "filling /tmp": { ...FILL, code: fillOf("/tmp") },
  "filling /tmp from folders below": { ...FILL, code: fillOf("/tmp/a/b") },
  "filling /dev/shm": { ...FILL, code: fillOf("/dev/shm") },
  "opening files": { ...DESCRIPTORS, code: openOf("os.open('/dev/null', 0)") },
  "opening sockets": { ...DESCRIPTORS, code: openOf("socket.socket(socket.AF_UNIX)") },
  "opening event counters": { ...DESCRIPTORS, code: openOf("os.eventfd(0)") },
};

/** What one cell may take, and that nothing but its limit keeps it from taking more. */
export function defineLimitAttacks(identity: "root" | "user"): void {
  let lab: Lab | undefined;
  afterEach(async () => await lab?.close());

  const attack = async (code: string, off: readonly Control[]): Promise<{ got: number; inside: Inside }> => {
    lab = await openLab({ off });
    const inside = await lab.start({ resources: RESOURCES });
    const { stdout, stderr } = await inside.python(code);
    expect(stderr).toBe("");
    return { got: Number(stdout.trim().split("\n").at(-1)), inside };
  };

  const attacks = Object.entries({ ...LIMIT_ATTACKS, ...(identity === "root" ? ROOT_ATTACKS : {}) });
  describe(`limits of a cell, as ${identity}`, () => {
    it.each(attacks)("hold against %s", async (_name, { code, most }) => {
      const { got, inside } = await attack(code, []);
      expect(got).toBeGreaterThan(0);
      expect(got).toBeLessThanOrEqual(most);
      expect((await inside.cell.usage()).pids).toBeLessThanOrEqual(RESOURCES.maxPids + 4);
    });

    it.each(attacks)("are what stops %s", async (_name, { code, control, wanted }) => {
      expect((await attack(code, [control])).got).toBe(wanted);
    });
  });
}
