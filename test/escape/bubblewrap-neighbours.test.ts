import { createServer } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { becomeOrdinaryUser, findProcess, type Lab, newMarker, openLab } from "./bubblewrap-instances.ts";

// As an ordinary user, for whom all cells share one user id: what keeps them apart here keeps root's apart as well.
beforeAll(becomeOrdinaryUser);

let lab: Lab | undefined;
afterEach(async () => await lab?.close());

const EVERYTHING: readonly Control[] = ["system-tree", "processes", "network", "seccomp"];

/** One cell offers a file, a process, a port and a socket; another tries to use them. */
async function attackNeighbour(off: readonly Control[]): Promise<string[]> {
  lab = await openLab({ off });
  const [victim, attacker] = [await lab.start(), await lab.start()];
  const marker = newMarker();
  await victim.run("bash", "-c", "echo secret > file");
  const offer = `import os, socket, time
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind("\\0${marker}"); b.listen()
open("port", "w").write(str(a.getsockname()[1])); time.sleep(1000)`;
  const wait = 'python3 -I -c "$0" > /dev/null 2>&1 & until [ -s port ]; do :; done; cat port';
  const { stdout: port } = await victim.run("bash", "-c", wait, offer);
  const pid = (await findProcess(marker))?.slice("/proc/".length);
  const workspace = join(victim.spec.folder, "files", "workspace", "file");
  const { stdout } = await attacker.python(`
import os, socket
def unix():
    with socket.socket(socket.AF_UNIX) as client: client.connect("\\0${marker}")
for attempt in (
    lambda: open("${workspace}").read(),
    lambda: open("/host${workspace}").read(),
    lambda: open("/proc/${pid}/root/workspace/file").read(),
    lambda: os.kill(${pid}, 0),
    lambda: socket.create_connection(("127.0.0.1", ${port}), 1).close(),
    unix,
):
    try: attempt(); print("done")
    except OSError: print("refused")
`);
  return stdout.trim().split("\n");
}

describe("another cell", () => {
  it("cannot be read, signalled or connected to", async () => {
    expect(await attackNeighbour([])).toEqual(Array.from({ length: 6 }, () => "refused"));
  });

  // The user namespace is left on: it alone still refuses the way through the other's /proc.
  it("could be, without namespaces and a tree of its own", async () => {
    expect((await attackNeighbour(EVERYTHING)).slice(1)).toEqual(["done", "refused", "done", "done", "done"]);
  });
});

describe("a unix socket of the host", () => {
  const connect = async (off: readonly Control[]): Promise<string> => {
    lab = await openLab({ off });
    const folder = await mkdtemp("/var/tmp/owlclaw-socket-");
    const server = createServer((socket) => socket.end("reached"));
    await new Promise<void>((resolve) => server.listen(join(folder, "s"), resolve));
    try {
      const inside = await lab.start();
      const { stdout } = await inside.python(`
import socket
for path in ("${folder}/s", "/host${folder}/s"):
    try:
        with socket.socket(socket.AF_UNIX) as client: client.connect(path); print(client.recv(10).decode())
    except OSError as error: print(error.errno)
`);
      return stdout.trim();
    } finally {
      server.close();
      await rm(folder, { recursive: true });
    }
  };

  it("is out of reach, as the engine's or an agent's would be", async () => {
    expect(await connect([])).toBe("2\n2");
  });

  it("would be in reach in the host's tree", async () => {
    expect(await connect(["system-tree"])).toBe("2\nreached");
  });
});

describe("files of the system that tell or change too much", () => {
  const read = async (off: readonly Control[]): Promise<string[]> => {
    lab = await openLab({ off });
    const inside = await lab.start();
    const { stdout } = await inside.python(`
for path in ("/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kallsyms", "/etc/shadow", "/root", "/home", "/sys/fs/cgroup", "/var/run/docker.sock", "/proc/1/root/root", "/proc/${process.pid}/status"):
    try: print(path, "read" if open(path).read(10) else "empty")
    except OSError: print(path, "refused")
for path in ("/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"):
    try: open(path, "w").write("1"); print(path, "written")
    except OSError as error: print(path, "refused")
`);
    return stdout.trim().split("\n");
  };

  it("are empty, hidden or read-only", async () => {
    const answers = await read([]);
    expect(answers).toHaveLength(14);
    expect(answers.filter((answer) => !/ (refused|empty)$/.test(answer))).toEqual([]);
  });

  it("would be read in the host's /proc", async () => {
    const answers = await read(["processes"]);
    expect(answers.filter((answer) => answer.endsWith(" read"))).toEqual(
      expect.arrayContaining(["/proc/kallsyms read", `/proc/${process.pid}/status read`]),
    );
  });
});
