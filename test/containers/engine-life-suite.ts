import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { isOrphan } from "../../src/sandbox/runtimes/docker/ownership.ts";
import { call, makePlace, type Place } from "../e2e/sandbox-client.ts";
import { FaultStory } from "../integration/fault-story.ts";
import { startWebhook } from "../services/webhook.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, PATIENCE } from "./engine-lab.ts";
import { containers } from "./engine-runtime.ts";

/** How containers live and end, beside what all sandboxes do. */
export function defineLifeSuite(engine: () => ContainerEngine): void {
  const { open, containersOf, workspacesOf, containerIn } = engineLab(engine);

  /** As the server that is dead wrote it on what it left. */
  const deadOwner = async (place: Place): Promise<string> => {
    const owner = '{{index .Labels "owlclaw.owner"}}';
    const owners = await engine().cli("volume", "inspect", "--format", owner, ...(await workspacesOf(place)));
    const dead = owners.split("\n").find((each) => isOrphan({ "owlclaw.owner": each }));
    if (dead === undefined) throw new Error(`nobody is dead: ${owners}`);
    return dead;
  };

  /** What a server of another data folder left, dead as it is. */
  const makeForeign = async (owner: string) => {
    const { cli, client, image } = engine();
    const labels = { "owlclaw.data": "another", "owlclaw.owner": owner };
    const flags = Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]);
    const small = ["--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
    const container = await cli(
      "run",
      "-d",
      ...small,
      ...flags,
      "--label",
      "owlclaw.kind=cell",
      image,
      "sleep",
      "1000",
    );
    const volume = "owlclaw-another-1";
    // Podman's command line takes no quotes in labels of volumes.
    const json = { Name: volume, Driver: "local", Labels: { ...labels, "owlclaw.kind": "workspace" } };
    await client.call({ method: "POST", path: "/volumes/create", json });
    onTestFinished(async () => {
      await cli("rm", "-f", container);
      await cli("volume", "rm", "-f", volume);
    });
    return {
      isThere: async () => ({
        container: (await cli("ps", "-q", "--no-trunc", "--filter", `id=${container}`)) === container,
        volume: (await cli("volume", "ls", "-q", "--filter", `name=${volume}`)) === volume,
      }),
    };
  };

  test("[002-docker] [002-logs] a sandbox is a container, whose id is logged when it is made, with each call and when it is removed", async () => {
    const { place, server, client } = await open();
    const inside = await openInside(client);
    expect(await inside.sh("cat /proc/1/cmdline | tr '\\0' ' '")).toMatch(
      /^\S*python3\S* -I -S \/opt\/owlclaw\/container_init.py .* \/opt\/owlclaw\/guest.mjs $/,
    );
    const id = String(containerIn(server.log, "container created"));
    expect(id).toMatch(/^[0-9a-f]{12}$/);
    expect((await containersOf(place)).map((each) => each.slice(0, 12))).toContain(id);
    const created = server.log.find(({ message }) => message === "sandbox created");
    expect(created).toMatchObject({ container: id, sandbox: expect.stringMatching(/^owl-/) });
    const told = { container: id, sandbox: created?.["sandbox"] };
    const line = (): unknown => server.log.find(({ tool }) => tool === "shell_exec");
    await vi.waitFor(() => expect(line()).toMatchObject(told), PATIENCE);
    await inside.call("sandbox_destroy");
    expect(containerIn(server.log, "container removed")).toBe(id);
    expect(await containersOf(place, "-a")).toEqual([]);
    expect(await workspacesOf(place)).toEqual([]);
    expect(await server.stop()).toBe(0);
  });

  test("a container of others whose image has the labels of a dead server is left alone", async () => {
    const { server, client, place } = await open();
    const inside = await openInside(client);
    const dataId = readFileSync(join(place.dataFolder, "docker", "id"), "utf8").trim();
    expect(await inside.sh("cat /proc/self/mountinfo /proc/self/cgroup")).not.toContain(dataId);
    await server.stop("SIGKILL");
    const { cli, image } = engine();
    const owner = await deadOwner(place);
    const labels = { "owlclaw.data": dataId, "owlclaw.server": "gone", "owlclaw.kind": "cell", "owlclaw.owner": owner };
    // An image that is made of a container has its labels, as those have which are built from it.
    const flags = Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]);
    const made = await cli("create", "--network", "none", ...flags, image, "true");
    await cli("commit", made, "labelled:1");
    await cli("rm", made);
    const small = ["--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
    const foreign = await cli(
      "run",
      "-d",
      ...small,
      "--name",
      "owlclaw-0123456789abcdef-0",
      "labelled:1",
      "sleep",
      "1000",
    );
    onTestFinished(async () => {
      await cli("rm", "-f", foreign);
      await cli("rmi", "labelled:1");
    });
    expect(JSON.parse(await cli("inspect", "--format", "{{json .Config.Labels}}", foreign))).toMatchObject(labels);
    const next = await open({}, place);
    await openInside(next.client);
    expect(await cli("ps", "-q", "--no-trunc", "--filter", `id=${foreign}`)).toBe(foreign);
    expect(await next.server.stop()).toBe(0);
    expect(await cli("ps", "-q", "--no-trunc", "--filter", `id=${foreign}`)).toBe(foreign);
  });

  test.each([
    [
      "holds the input of every process open and stops the guest",
      `import os, signal, time
kept = []
for entry in os.listdir("/proc"):
    if not entry.isdigit(): continue
    for fd in ("0", "1", "2"):
        try: kept.append(os.open(f"/proc/{entry}/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK))
        except OSError: pass
for entry in os.listdir("/proc"):
    if entry.isdigit() and "guest.mjs" in open(f"/proc/{entry}/cmdline").read() and entry != "1":
        os.kill(int(entry), signal.SIGSTOP)
time.sleep(10_000)`,
    ],
    [
      "sends every signal to the first process and stops all others",
      `import os, signal, time
for number in signal.valid_signals() - {signal.SIGKILL}:
    try: os.kill(1, number)
    except OSError: pass
for path in ("mem", "fd/0", "maps", "environ"):
    try: open(f"/proc/1/{path}", "rb").read(1); os._exit(9)
    except OSError: pass
for entry in os.listdir("/proc"):
    if entry.isdigit() and int(entry) not in (1, os.getpid()):
        try: os.kill(int(entry), signal.SIGSTOP)
        except OSError: pass
time.sleep(10_000)`,
    ],
  ])("a killed server leaves nothing running, also when code inside %s", async (_what, code) => {
    const { server, client, place } = await open();
    const inside = await openInside(client);
    await inside.call("file_write", { path: "hold.py", content: code });
    const isGuestStopped = (): boolean =>
      containers(engine)
        .processes(server)
        .some(({ command, state }) => state === "T" && command.includes("guest.mjs"));
    // No answer comes: the guest is stopped.
    inside.call("shell_exec", { command: "python3 hold.py", background: true }).catch(() => undefined);
    await vi.waitFor(() => expect(isGuestStopped()).toBe(true), PATIENCE);
    await server.stop("SIGKILL");
    await vi.waitFor(async () => expect(await containersOf(place)).toEqual([]), PATIENCE);
    const next = await open({}, place);
    expect(await next.server.stop()).toBe(0);
    expect(await containersOf(place, "-a")).toEqual([]);
  });

  test("code inside cannot lower the priority of the first process, and can lower its own", async () => {
    const { server, client } = await open();
    const inside = await openInside(client);
    const content = `import ctypes, os
libc = ctypes.CDLL(None)
libc.sched_setscheduler(1, os.SCHED_IDLE, ctypes.byref(ctypes.c_int(0)))
for which, who in ((os.PRIO_PROCESS, 1), (os.PRIO_PGRP, 1), (os.PRIO_USER, 0)): libc.setpriority(which, who, 19)
os.nice(7)
print(os.sched_getscheduler(1), os.getpriority(os.PRIO_PROCESS, 1), os.getpriority(os.PRIO_PROCESS, 0))`;
    await inside.call("file_write", { path: "slow.py", content });
    expect(await inside.sh("python3 slow.py")).toBe("0 0 7\n");
    expect(await server.stop()).toBe(0);
  });

  test("a killed server leaves nothing running; the next one removes the rest, and nothing of others or of the living", async () => {
    const { server, client, place } = await open();
    await openInside(client);
    const living = await open({}, place);
    const neighbour = await openInside(living.client);
    await neighbour.call("file_write", { path: "kept.txt", content: "kept" });
    expect(await containersOf(place)).toHaveLength(2);
    await server.stop("SIGKILL");
    await vi.waitFor(async () => expect(await containersOf(place)).toHaveLength(1), PATIENCE);
    expect(await workspacesOf(place)).toHaveLength(2);
    const foreign = await makeForeign(await deadOwner(place));
    const next = await open({}, place);
    expect(await containersOf(place, "-a")).toHaveLength(1);
    expect(await workspacesOf(place)).toHaveLength(1);
    expect(await foreign.isThere()).toEqual({ container: true, volume: true });
    const kept = await neighbour.call("file_read", { path: "kept.txt" });
    expect(kept.structuredContent).toMatchObject({ content: "kept" });
    expect(kept.structuredContent).not.toHaveProperty("sandbox_restarted");
    for (const each of [next, living]) expect(await each.server.stop()).toBe(0);
    expect(await workspacesOf(place)).toEqual([]);
  });

  test("a container that somebody kills starts again on the same files", async () => {
    const { place, server, client } = await open();
    const inside = await openInside(client);
    await inside.call("file_write", { path: "kept.txt", content: "kept" });
    const [id = ""] = await containersOf(place);
    await engine().cli("kill", id);
    await vi.waitFor(() => expect(containerIn(server.log, "container removed")).toBe(id.slice(0, 12)), PATIENCE);
    const read = await inside.call("file_read", { path: "kept.txt" });
    expect(read.structuredContent).toMatchObject({ content: "kept", sandbox_restarted: true });
    const [next = ""] = await containersOf(place);
    const line = (): unknown => server.log.findLast(({ tool }) => tool === "file_read");
    await vi.waitFor(() => expect(line()).toMatchObject({ container: next.slice(0, 12) }), PATIENCE);
    await server.stop();
  });

  test("[004-R9.10] while the engine is away every call, health, webhook, log and metrics say so; when it is back, sandboxes go on with their files", async () => {
    const webhook = await startWebhook();
    const alerts = { webhook: webhook.url, checkSeconds: 1 };
    const { place, server, client, origin, health } = await open({}, makePlace(), { alerts });
    const hidden = [place.dataFolder, engine().host.replace(/^\w+:\/\//, "")];
    const story = new FaultStory({ origin, logs: server.log }, webhook, { hidden });
    const inside = await openInside(client);
    await inside.call("file_write", { path: "kept.txt", content: "kept" });
    expect(await health()).toBe(200);
    await engine().kill();
    await vi.waitFor(async () => {
      await expect(inside.call("code_run", { code: "1" })).rejects.toThrow(/container engine .* cannot be reached/);
    }, PATIENCE);
    await expect(call(client, "sandbox_create")).rejects.toThrow(/container engine .* cannot be reached/);
    await story.tellsOf({ check: "runtime", status: "down", http: 503 });
    await engine().start();
    await story.recovers("runtime");
    expect((await inside.call("file_read", { path: "kept.txt" })).structuredContent).toMatchObject({ content: "kept" });
    await inside.call("sandbox_destroy");
    await vi.waitFor(async () => expect(await containersOf(place, "-a")).toEqual([]), PATIENCE);
    expect(await workspacesOf(place)).toEqual([]);
    expect(await server.stop()).toBe(0);
  });

  test("folders of the host are seen inside, and written as their owner", async () => {
    const place = makePlace();
    for (const name of ["read", "write"]) mkdirSync(join(place.folder, name));
    writeFileSync(join(place.folder, "read", "given.txt"), "given");
    const { chownSync } = await import("node:fs");
    chownSync(join(place.folder, "write"), 4321, 4321);
    const volumes = [`${place.folder}/read:/given:ro`, `${place.folder}/write:/shared`];
    const { server, client } = await open({ volumes }, place);
    const inside = await openInside(client);
    expect(await inside.sh("cat /given/given.txt; touch /given/x 2> /dev/null || echo refused")).toBe("givenrefused\n");
    await inside.sh("echo made > /shared/made.txt");
    expect(readFileSync(join(place.folder, "write", "made.txt"), "utf8")).toBe("made\n");
    expect(statSync(join(place.folder, "write", "made.txt")).uid).toBe(4321);
    await server.stop();
  });
}
