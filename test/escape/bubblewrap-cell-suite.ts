import { randomBytes } from "node:crypto";
import { chown, open, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  becomeOrdinaryUser,
  cellSpec,
  folderOf,
  type Inside,
  isRunning,
  type Lab,
  MIB,
  newMarker,
  NO_ABORT,
  openLab,
} from "./bubblewrap-instances.ts";
import { defineLimitAttacks } from "./bubblewrap-limit-attacks.ts";
import { bundleServer, HANDED_DESCRIPTOR, openServerPlace, type ServerPlace } from "./bubblewrap-server-process.ts";

const GONE = { timeout: 20_000, interval: 5 };

/** How cells live and die; the same for every user, who is named only in what he cannot have. */
export function defineCellSuite(identity: "root" | "user"): void {
  let bundle = "";
  beforeAll(async () => {
    bundle = await bundleServer();
    if (identity === "user") becomeOrdinaryUser();
  });

  let lab: Lab;
  afterEach(async () => await lab?.close());
  const enterCell = async (...changes: Parameters<Lab["start"]>): Promise<Inside> => {
    lab = await openLab();
    return await lab.start(...changes);
  };

  describe(`a cell, as ${identity}`, () => {
    it("has an interpreter of each language, git and a shell, and is nobody in particular", async () => {
      const inside = await enterCell();
      const found = await inside.run("bash", "-c", "command -v node python3 git bash && id -un && hostname && pwd");
      expect(found.stdout.split("\n").slice(-4, -1)).toEqual(["sandbox", "sandbox", "/workspace"]);
      expect(found).toMatchObject({ code: 0, stderr: "" });
    });

    it("gets its environment without showing it in any command line of the host or in its first process", async () => {
      const secret = randomBytes(16).toString("hex");
      const inside = await enterCell({ env: { API_TOKEN: secret, "ODD NAME": "-x\n'\"$(id)" } });
      const seen = await inside.python("import os; print(os.environ['API_TOKEN'], ascii(os.environ['ODD NAME']))");
      expect(seen.stdout.trim()).toBe(`${secret} ${String.raw`'-x\n\'"$(id)'`}`);
      expect(await isRunning(secret)).toBe(false);
      const first = await inside.python("print(repr(open('/proc/1/environ').read() + open('/proc/1/cmdline').read()))");
      expect(first.stdout).toContain("bwrap");
      expect(first.stdout).not.toContain(secret);
    });

    it("keeps its workspace when it is started anew, and loses /tmp", async () => {
      const inside = await enterCell();
      await inside.run("bash", "-c", "echo kept > file; mkdir -m 700 own; echo lost > /tmp/file");
      await inside.cell.stop();
      const again = await lab.start({ folder: inside.spec.folder });
      const seen = await again.run("bash", "-c", "cat file; echo more > own/file; ls -A . /tmp");
      expect(seen.stdout.split("\n")).toEqual(["kept", ".:", "file", "own", "", "/tmp:", ""]);
      expect(seen.stderr).toBe("");
    });

    it("ends daemons, double forks and ignored signals with it, and says so", async () => {
      const marker = newMarker();
      const inside = await enterCell();
      await inside.run(
        "bash",
        "-c",
        `setsid nohup bash -c 'trap "" TERM HUP INT; (exec sleep ${marker}) & wait' > /dev/null 2>&1 < /dev/null & disown`,
      );
      await vi.waitFor(async () => expect(await isRunning(marker)).toBe(true), GONE);
      await inside.cell.stop();
      expect(await isRunning(marker)).toBe(false);
      expect(await inside.cell.exited).toEqual({ code: null, signal: "SIGKILL", reason: "stopped" });
      await inside.cell.stop();
    });

    it("ends as a whole when everything in it kills everything else", async () => {
      const inside = await enterCell();
      inside.send("bash", "-c", "kill -9 -1");
      expect(await inside.cell.exited).toEqual({ code: 137, signal: null });
    });

    it("leaves no folder, record or user id once it is stopped and discarded", async () => {
      const inside = await enterCell();
      await inside.cell.stop();
      await lab.runtime.discard(inside.spec.folder);
      const state = join(lab.dataFolder, "bubblewrap");
      expect(await readdir(join(lab.dataFolder, "workspaces"))).toEqual([]);
      expect(await readdir(join(state, "cells"))).toEqual([]);
      expect(await readdir(join(state, "uids")).catch(() => [])).toEqual([]);
    });

    it("reaches the egress proxy's socket when it is given one, and has none otherwise", async () => {
      lab = await openLab();
      const egressSocket = join(lab.folder, "odd # name\\ egress.sock");
      const proxy = createServer((socket) => socket.end("proxy"));
      await new Promise<void>((resolve) => proxy.listen(egressSocket, resolve));
      const connect =
        "import os, socket; c = socket.socket(socket.AF_UNIX); c.connect(os.environ['OWLCLAW_EGRESS']); print(c.recv(9))";
      const [connected, alone] = [await lab.start({ egressSocket }), await lab.start()];
      expect((await connected.python(connect)).stdout).toBe("b'proxy'\n");
      expect((await alone.python(connect)).stderr).toContain("KeyError");
      expect((await alone.run("ls", "/run")).code).not.toBe(0);
      proxy.close();
    });

    it("tells what it uses", async () => {
      const inside = await enterCell();
      const usage = await inside.cell.usage();
      expect(usage.memoryBytes).toBeGreaterThan(MIB);
      expect(usage.pids).toBeGreaterThan(1);
      expect(usage.cpuMs).toBeGreaterThan(0);
    });

    it("says why it could not be started, and leaves nothing of the attempt", async () => {
      lab = await openLab();
      await rm(join(lab.dataFolder, "bubblewrap", "guests", lab.options.serverId), { recursive: true });
      const spec = cellSpec(lab.dataFolder);
      // An ordinary user's bwrap tells that the namespaces exist before it mounts: then the cell ends at once.
      await expect(lab.start(spec)).rejects.toThrow(/(could not be started|the cell ended).*guest/s);
      const { checks } = await lab.runtime.probe(NO_ABORT);
      expect(checks).toMatchObject([{ name: "start", holds: false, severity: "isolation" }]);
      await lab.runtime.discard(spec.folder);
      expect(await readdir(join(lab.dataFolder, "bubblewrap", "cells"))).toEqual([]);
    });

    it("is not started once the caller has given up", async () => {
      lab = await openLab();
      const spec = cellSpec(lab.dataFolder);
      await expect(lab.runtime.start(spec, AbortSignal.abort())).rejects.toThrow("aborted");
      const giveUp = new AbortController();
      const starting = lab.runtime.start(spec, giveUp.signal);
      setImmediate(() => giveUp.abort());
      await expect(starting).rejects.toThrow("aborted");
      await lab.runtime.discard(spec.folder);
      expect(await readdir(join(lab.dataFolder, "bubblewrap", "cells"))).toEqual([]);
    });

    it("is refused a start below an id, a folder or a variable that is not ours", async () => {
      lab = await openLab();
      await expect(lab.start({ id: "../x" })).rejects.toThrow("not an id");
      await expect(lab.start({ folder: "/somewhere/else" })).rejects.toThrow("below the data folder");
      await expect(lab.start({ env: { "A=B": "c" } })).rejects.toThrow("not a variable");
      await expect(lab.start({ env: { A: "b\0--bind\0/\0/host" } })).rejects.toThrow("not a variable");
      await expect(lab.runtime.discard(lab.dataFolder)).rejects.toThrow("below the data folder");
    });
  });

  defineLimitAttacks(identity);

  describe(`volumes, as ${identity}`, () => {
    const owners = identity === "root" ? [0, 12_345] : [process.getuid?.()];

    it.each(owners)("gives files written there to the volume's owner %#", async (owner) => {
      lab = await openLab();
      const hostPath = await folderOf(lab, "shared # files", identity === "root" ? owner : undefined);
      await writeFile(join(hostPath, "private"), "of the owner", { mode: 0o600 });
      if (identity === "root") await chown(join(hostPath, "private"), owner ?? 0, owner ?? 0);
      const inside = await lab.start({ volumes: [{ hostPath, guestPath: "/data", isReadOnly: false }] });
      const seen = await inside.run("bash", "-c", "cat /data/private; echo new > /data/made; stat -c %U /data/made");
      expect(seen).toMatchObject({ stdout: "of the ownersandbox\n", stderr: "" });
      expect((await stat(join(hostPath, "made"))).uid).toBe((await stat(hostPath)).uid);
    });

    it("cannot be written when they are read-only, nor carry set-id programs", async () => {
      lab = await openLab();
      const hostPath = await folderOf(lab, "shared");
      const volumes = [
        { hostPath, guestPath: "/data", isReadOnly: false },
        { hostPath, guestPath: "/fixed", isReadOnly: true },
      ];
      const inside = await lab.start({ volumes });
      const tried = await inside.python(`
import os
for attempt in (lambda: open('/fixed/x', 'w'), lambda: os.chmod('/data/tool', 0o4755), lambda: os.open('/data/two', os.O_CREAT, 0o4755), lambda: os.mknod('/data/three', 0o104755)):
    open('/data/tool', 'w').close()
    try: print('done', attempt())
    except OSError as error: print(error.errno)
`);
      expect(tried.stdout.split("\n")).toEqual(["30", "1", "1", "1", ""]);
      await lab.close();
      lab = await openLab({ off: ["seccomp"] });
      const without = await lab.start({ volumes: [{ ...volumes[0]!, hostPath: await folderOf(lab, "shared") }] });
      expect(
        (await without.python("import os; open('/data/t', 'w'); os.chmod('/data/t', 0o4755); print('done')")).stdout,
      ).toBe("done\n");
    });

    it.each(["/", "/etc/x", "/workspace/sub", "/usr", "/tmp/x", "/proc", "relative", "/data/../etc", "/opt"])(
      "are refused at %s",
      async (guestPath) => {
        lab = await openLab();
        const hostPath = await folderOf(lab, "shared");
        await expect(lab.start({ volumes: [{ hostPath, guestPath, isReadOnly: true }] })).rejects.toThrow(
          "cannot be mounted",
        );
      },
    );

    it("are refused when they would show the server's own data, by a link or by a parent", async () => {
      lab = await openLab();
      await symlink(lab.dataFolder, join(lab.folder, "innocent"));
      for (const hostPath of [join(lab.folder, "innocent"), lab.folder, tmpdir()]) {
        const volumes = [{ hostPath, guestPath: "/data", isReadOnly: true }];
        await expect(lab.start({ volumes })).rejects.toThrow("own data folder");
      }
    });
  });

  describe(`a server of its own, as ${identity}`, () => {
    let place: ServerPlace;
    afterEach(async () => await place.close());

    it("leaves nothing running or mounted when it is killed, and the next one removes the rest, and only that", async () => {
      const marker = newMarker();
      place = await openServerPlace(bundle);
      const commands = [["bash", "-c", `setsid sleep ${marker} > /dev/null 2>&1 & echo started`]];
      const [doomed, healthy] = await Promise.all([place.start({ cells: 2, commands }), place.start({ cells: 1 })]);
      expect(await isRunning(marker)).toBe(true);
      await doomed.kill();
      await vi.waitFor(async () => expect(await isRunning(marker)).toBe(false), GONE);
      expect(await readFile("/proc/self/mountinfo", "utf8")).not.toContain(place.dataFolder);

      lab = await openLab({ dataFolder: place.dataFolder });
      const { removed } = await lab.runtime.reap();
      expect([...removed].toSorted()).toEqual(doomed.answers.map((answer) => answer.id).toSorted());
      const left = await readdir(join(place.dataFolder, "workspaces"));
      expect(left).toEqual(healthy.answers.map((answer) => answer.id));
      expect(await lab.runtime.reap()).toEqual({ removed: [] });
    });

    it("passes on no descriptor that it inherited", async () => {
      place = await openServerPlace(bundle);
      const secret = await open("/", "r");
      const commands = [["bash", "-c", `ls /proc/self/fd; ls -d /proc/self/fd/${HANDED_DESCRIPTOR}/proc`]];
      try {
        const kept = await place.start({ commands }, { descriptor: secret.fd });
        expect(kept.answers[0]?.outcomes[0]?.stdout).toBe("0\n1\n2\n3\n");
        const leaky = await place.start({ commands, off: ["inherited-descriptors"] }, { descriptor: secret.fd });
        expect(leaky.answers[0]?.outcomes[0]?.stdout).toContain(`/proc/self/fd/${HANDED_DESCRIPTOR}/proc`);
      } finally {
        await secret.close();
      }
    });
  });
}
