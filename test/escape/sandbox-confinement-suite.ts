import type { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { ATTEMPT, type Inside, openInside } from "./sandbox-lab.ts";

/** Attacks that need nothing but a client. `ports`: two of the machine that somebody listens on. `open`: where sandboxes are dear. */
export function defineConfinementTests(
  client: () => Client,
  ports: () => Promise<readonly number[]>,
  open: (client: Client) => Promise<Inside> = openInside,
): void {
  test("the MCP port, the host's loopback and every other address are out of reach", async () => {
    const inside = await open(client());
    // Whatever is tried below stays inside: there is no device but loopback.
    const devices = await inside.python(
      "print([line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line])",
    );
    expect(devices).toBe("['lo']\n");
    const seen = await inside.python(`
import socket
${ATTEMPT}
for port in ${JSON.stringify(await ports())}:
    for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "127.1.2.3", "::ffff:127.0.0.1"): attempt(host, lambda: socket.create_connection((host, port), 1))
for host in ("169.254.169.254", "fd00:ec2::254", "10.0.0.1", "192.0.2.1"): attempt(host, lambda: socket.create_connection((host, 80), 1))
def datagram(host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.sendto(b"x", (host, 53))
for host in ("169.254.169.254", "192.0.2.1", "255.255.255.255"): attempt("udp", lambda: datagram(host))
attempt("dns", lambda: socket.getaddrinfo("example.com", 80))
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_PACKET, socket.SOCK_RAW, 768), (40, socket.SOCK_STREAM, 0), (38, socket.SOCK_SEQPACKET, 0)):
    attempt(f"family {family}", lambda: socket.socket(family, kind, protocol))
`);
    const answers = seen.trim().split("\n");
    expect(answers).toHaveLength(25);
    expect(answers.filter((line) => !line.endsWith("refused"))).toEqual([]);
  });

  test("namespaces, mounts, ptrace, io_uring and the like are refused to code that comes through a tool", async () => {
    const inside = await open(client());
    const seen = await inside.python(`
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
${ATTEMPT}
def system(name, *args):
    if getattr(libc, name)(*args) == -1: raise OSError(ctypes.get_errno(), name)
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x02000000, 0x04000000, 0x08000000): attempt("unshare", lambda: system("unshare", flag))
attempt("setns", lambda: system("setns", os.open("/proc/1/ns/user", os.O_RDONLY), 0))
attempt("mount tmpfs", lambda: system("mount", b"none", b"/workspace", b"tmpfs", 0, None))
attempt("mount proc", lambda: system("mount", b"proc", b"/workspace", b"proc", 0, None))
attempt("remount", lambda: system("mount", None, b"/", None, 32, None))
attempt("umount", lambda: system("umount2", b"/workspace", 2))
attempt("chroot", lambda: os.chroot("/workspace"))
for request in (16, 0x4206, 0): attempt("ptrace", lambda: system("ptrace", request, 2, 0, 0))
for number in (425, 426, 427, 428, 429, 430, 432, 438, 442): attempt(number, lambda: system("syscall", number, 1, 0, 0, 0, 0))
attempt("mknod", lambda: os.mknod("/workspace/disk", 0o60600, os.makedev(254, 0)))
attempt("setuid", lambda: os.setuid(0))
attempt("set-id bit", lambda: (open("s", "w").close(), os.chmod("s", 0o4755)))
`);
    const answers = seen.trim().split("\n");
    expect(answers).toHaveLength(28);
    expect(answers.filter((line) => !line.endsWith("refused"))).toEqual([]);
    for (const command of [
      "unshare -Ur true",
      "unshare -m true",
      "mount -t tmpfs x /workspace",
      "bwrap --unshare-all --bind / / true",
      "nsenter -t 1 -a true",
    ])
      expect(await inside.sh(`${command} 2> /dev/null && echo done`), `$ ${command}`).toBe("");
  });
}
