import { expect, test } from "vitest";
import { SYSCALLS } from "../../src/sandbox/runtimes/seccomp/syscall-numbers.ts";
import { ATTEMPT, type Inside } from "../escape/sandbox-lab.ts";
import { CANARY } from "./kept-lab.ts";
import type { MicrosandboxLab } from "./microsandbox-suite.ts";

export interface MachineAttackWish {
  readonly lab: () => MicrosandboxLab;
  readonly inside: () => Inside;
  /** Another sandbox of the same server. */
  readonly neighbour: () => Inside;
}

/** Calls that need no more than a number to be refused; their errors would be others if the kernel looked at them. */
const ORDERS = [
  "init_module",
  "finit_module",
  "delete_module",
  "kexec_load",
  "kexec_file_load",
  "bpf",
  "perf_event_open",
  "userfaultfd",
  "keyctl",
  "open_by_handle_at",
  "process_vm_readv",
  "fanotify_init",
  "iopl",
  "ioperm",
  "modify_ldt",
  "syslog",
  "reboot",
  "swapon",
  "settimeofday",
  "sethostname",
  "acct",
  "pivot_root",
] as const;

/** Kernel, devices and doors of a microVM, and the one next to it. The hypervisor itself cannot be tried from here. */
export function defineMachineAttacks({ lab, inside, neighbour }: MachineAttackWish): void {
  test("another microVM is out of reach: its files, its disk, its ports and its sockets", async () => {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const reach = `
import os, socket
${ATTEMPT}
def reach(family, where):
    with socket.socket(family) as s: s.settimeout(5); s.connect(where)
attempt("port", lambda: reach(socket.AF_INET, ("127.0.0.1", ${port})))
for path in ("\\0${CANARY}", "/tmp/s", "/workspace/s", "/dev/shm/s"): attempt("socket", lambda: reach(socket.AF_UNIX, path))
attempt("file", lambda: len(open("/workspace/secret.txt").read()))
`;
    const own = await neighbour().python(`
import socket
open("secret.txt", "w").write(${JSON.stringify(CANARY)})
def listen(family, where):
    s = socket.socket(family); s.bind(where); s.listen(); return s
kept = [listen(socket.AF_INET, ("127.0.0.1", ${port})), listen(socket.AF_UNIX, "\\0${CANARY}"), listen(socket.AF_UNIX, "/tmp/s"), listen(socket.AF_UNIX, "/workspace/s"), listen(socket.AF_UNIX, "/dev/shm/s")]
${reach}`);
    expect(linesOf(own).filter((line) => !/ done /.test(line))).toEqual([]);
    expect(linesOf(own)).toHaveLength(6);
    const { folders, sandboxes, sockets } = await lab().place.ask("facts");
    expect([folders.length, sandboxes.length]).toEqual([2, 2]);
    const { place, msb } = lab().place.order;
    const seen = await inside().python(`${reach}
for folder in ${JSON.stringify(folders)}: attempt("folder", lambda: os.listdir(f"${place}/data/sandboxes/{folder}"))
for name in ${JSON.stringify(sandboxes)}: attempt("machine", lambda: os.listdir(f"${msb}/sandboxes/{name}"))
for name in ${JSON.stringify(sockets)}: attempt("line", lambda: reach(socket.AF_UNIX, f"${place}/data/microsandbox/lines/{name}"))
`);
    expect(linesOf(seen)).toHaveLength(6 + folders.length + sandboxes.length + sockets.length);
    expect(linesOf(seen).filter((line) => !line.endsWith("refused"))).toEqual([]);
  });

  test("the machine's kernel takes no orders: modules, tracing, time, switching off", async () => {
    const numbers = Object.fromEntries(ORDERS.map((name) => [name, SYSCALLS[name][0]]));
    const seen = await inside().python(`
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in ${JSON.stringify(numbers)}.items():
    result = libc.syscall(number, *map(ctypes.c_long, (-1, 0, 0, 0, 0, 0)))
    print(name, "refused" if result == -1 and ctypes.get_errno() in (1, 38) else f"gave {result}, {ctypes.get_errno()}")
`);
    expect(linesOf(seen)).toEqual(ORDERS.map((name) => `${name} refused`));
    const files = await inside().sh(`
      for file in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/panic_on_oom /sys/kernel/uevent_helper /sys/power/state /sys/module/kvm/parameters/halt_poll_ns
      do echo 1 2> /dev/null > $file && echo "wrote $file"; done
      for file in /proc/kcore /proc/kmsg /dev/kmsg /proc/kpagemap /sys/kernel/debug/x /sys/kernel/tracing/trace /sys/firmware/acpi/tables/DSDT /boot/x
      do head -c 1 $file 2> /dev/null | grep -q . && echo "read $file"; done
      modprobe loop 2> /dev/null && echo loaded; dmesg 2> /dev/null | head -n 1; cat /proc/self/status | grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):'`);
    expect(files).toBe("CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
  });

  test("no device and no line to the host is there, whatever the machine itself has", async () => {
    const seen = await inside().python(`
import os, socket
${ATTEMPT}
print(sorted(os.listdir("/dev")))
for cid in (1, 2, 3):
    for port in (1024, 5001, 5002): attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).connect((cid, port)))
for name in ("vda", "vdb", "vport0p1", "vport1p1", "hvc0", "console", "fuse", "vsock", "kvm", "mem", "port", "loop0", "net/tun", "ttyS0"):
    attempt(name, lambda: os.open(f"/dev/{name}", os.O_RDWR))
for name in ("block/vda/size", "class/net/eth0"): attempt(name, lambda: os.open(f"/sys/{name}", os.O_RDWR))
`);
    const [devices, ...answers] = linesOf(seen);
    expect(devices).toBe(
      "['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']",
    );
    const nodes = String.raw`find / \( -path /proc -o -path /dev -o -path /sys -o -path /workspace \) -prune -o -type b,c,s -print`;
    expect(await inside().sh(`${nodes} 2> /dev/null`, 240)).toBe("");
    expect(answers).toHaveLength(9 + 14 + 2);
    expect(answers.filter((line) => !line.endsWith("refused"))).toEqual([]);
  });
}

function linesOf(text: string): string[] {
  return text.trim().split("\n");
}
