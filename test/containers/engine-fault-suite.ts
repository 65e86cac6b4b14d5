import { readdirSync, rmSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { callTool } from "../escape/http-client.ts";
import { FaultUser } from "../escape/sandbox-fault-user.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, type Opened, PATIENCE } from "./engine-lab.ts";
import { containers } from "./engine-runtime.ts";

const KILLS = 3;
const WRITE_BYTES = 1024 * 1024;
/** One of each kind of call that `FaultUser` makes. */
const STEPS = [0.1, 0.3, 0.55, 0.7, 0.9];

/** The engine, its containers and its disk fail one after another under calls that go on all the time. */
export function defineFaultSuite(engine: () => ContainerEngine, count: number): void {
  const lab = engineLab(engine);

  // The first time with nothing of ours on the engine, then with all that a start leaves there.
  test.each(["first", "second"])("a %s start on a full disk says so, and serves when there is room", async () => {
    const path = join(engine().folder, "data", "filler");
    const empty = (): void => rmSync(path, { force: true });
    onTestFinished(empty);
    await fillDisk(path);
    const { server, origin, client, health } = await lab.open();
    await vi.waitFor(async () => expect(await health()).toBe(503), PATIENCE);
    const report = (await (await fetch(`${origin}/health`)).json()) as { checks: Record<string, unknown> };
    const message = "no sandbox can start: the disk for sandboxes is full";
    expect(report.checks["runtime"]).toMatchObject({ status: "down", message });
    await expect(call(client, "sandbox_create")).rejects.toMatchObject({
      message: expect.stringContaining("the disk of the container engine is full") as unknown,
      data: { kind: "sandbox_unavailable", reason: "disk_full", retryable: true },
    });
    empty();
    await vi.waitFor(async () => expect(await health()).toBe(200), PATIENCE);
    expect(await (await openInside(client)).sh("echo served")).toBe("served\n");
    expect(await server.stop()).toBe(0);
  });

  test(`${count} sandboxes at work outlive killed containers, a killed engine and a full disk, without a wrong answer or anything left`, async () => {
    const opened = await lab.open({
      maxPerPrincipal: count + 5,
      maxTotal: count + 5,
      maxTotalMemoryMb: 1024 * 1024,
      network: { allow: ["example.com"] },
    });
    const load = await startLoad(opened, count);
    await load.allGoOn();

    const killSome = async (): Promise<void> => {
      const alive = await lab.containersOf(opened.place);
      // One that has just ended by itself cannot be killed.
      await Promise.allSettled(alive.filter((_id, n) => n % KILLS === 0).map((id) => engine().cli("kill", id)));
    };
    // One that dies between two calls is started again and nobody hears of it: on until a call was hit.
    const hits = (): readonly string[] => load.heads("sandbox ended while the call ran");
    for (let round = 0; round < KILLS || hits().length === 0; round += 1) {
      await killSome();
      await load.allGoOn();
    }

    await engine().kill();
    await vi.waitFor(async () => expect(await opened.health()).toBe(503), PATIENCE);
    expect(await load.failure("sandbox_create")).toMatchObject({ kind: "sandbox_unavailable", reason: "engine_down" });
    await vi.waitFor(() => expect(load.heads("cannot be reached")).not.toEqual([]), PATIENCE);
    await engine().start();
    await vi.waitFor(async () => expect(await opened.health()).toBe(200), PATIENCE);
    await load.allGoOn();

    // Again and again: a container that ends gives room back.
    const path = join(engine().folder, "data", "filler");
    const whileFull = async (check: () => Promise<void> | void): Promise<void> =>
      await vi.waitFor(async () => {
        await fillDisk(path);
        await check();
      }, PATIENCE);
    await whileFull(async () => {
      const message = expect.stringContaining("the disk of the container engine is full") as unknown;
      expect(await load.failure("sandbox_create")).toMatchObject({ kind: "sandbox_unavailable", message });
    });
    await whileFull(async () => expect(await opened.health()).toBe(503));
    await whileFull(() => expect(load.heads("the disk quota is used up")).not.toEqual([]));
    // One that starts again in the room that it gave back hears of nothing: on until a call was hit.
    await whileFull(async () => {
      await killSome();
      expect(load.heads("the disk of the container engine is full")).not.toEqual([]);
    });
    rmSync(path);
    await load.allGoOn();
    await vi.waitFor(async () => expect(await opened.health()).toBe(200), PATIENCE);

    await load.stop();
    expect(load.unfair).toEqual([]);
    await expectNothingLeft(engine(), opened, lab);
  });
}

interface Load {
  /** Failures that leave the caller without a next step. */
  readonly unfair: string[];
  /** First lines of failures that say this. */
  heads(words: string): readonly string[];
  /** Waits until every sandbox has answered rightly again. */
  allGoOn(): Promise<void>;
  /** The data of the error that a call must end with. */
  failure(tool: string): Promise<unknown>;
  stop(): Promise<void>;
}

async function startLoad({ server }: Opened, count: number): Promise<Load> {
  const { origin } = new URL(await server.url());
  const users = await Promise.all(Array.from({ length: count }, () => FaultUser.create(origin)));
  const unfair: string[] = [];
  const heads = new Set<string>();
  const over = new AbortController();
  for (const user of users) {
    user.onFailure = (text) => {
      const head = fairHead(text);
      if (head === undefined) unfair.push(text);
      else heads.add(head);
    };
  }
  const loops = users.map(async (user, index) => {
    for (let step = index; !over.signal.aborted; step += 1) {
      await user.step(STEPS[step % STEPS.length] ?? 0);
    }
  });
  let wrong: unknown;
  const all = Promise.all(loops).catch((error: unknown) => {
    wrong = error;
  });
  const allGoOn = async (): Promise<void> => {
    const before = users.map(({ answers }) => answers);
    await vi.waitFor(() => {
      const waiting = users.filter((user, n) => user.answers <= (before[n] ?? 0) + 1);
      expect(wrong === undefined ? waiting : []).toEqual([]);
    }, PATIENCE);
    expect(wrong).toBeUndefined();
  };
  const failure = async (tool: string): Promise<unknown> => {
    const { json, text } = await callTool(origin, tool);
    return json?.error?.data ?? json?.result?.structuredContent ?? text;
  };
  const stop = async (): Promise<void> => {
    over.abort();
    await all;
    expect(wrong).toBeUndefined();
  };
  return { unfair, heads: (words) => [...heads].filter((head) => head.includes(words)), allGoOn, failure, stop };
}

/** What a call says that was hit, if it names the caller's or the operator's next step. */
function fairHead(text: string): string | undefined {
  const { result, error } = JSON.parse(text) as FailedAnswer;
  if (error !== undefined)
    return error.data.kind === "sandbox_unavailable" && error.data.hint !== "" ? error.message : undefined;
  const [head, hint] = result?.content[0]?.text.split("\n") ?? [];
  return hint?.startsWith("hint: ") === true ? head : undefined;
}

interface FailedAnswer {
  readonly error?: { readonly message: string; readonly data: { readonly kind: string; readonly hint: string } };
  readonly result?: { readonly content: readonly { readonly text: string }[] };
}

/** Takes every byte that the disk has left. */
async function fillDisk(path: string): Promise<void> {
  const file = await openFile(path, "a");
  const block = Buffer.alloc(WRITE_BYTES);
  try {
    for (;;) await file.write(block);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  } finally {
    await file.close();
  }
}

async function expectNothingLeft(
  engine: ContainerEngine,
  { server, place }: Opened,
  { containersOf, workspacesOf }: ReturnType<typeof engineLab>,
): Promise<void> {
  expect(await server.stop()).toBe(0);
  expect(await containersOf(place, "-a")).toEqual([]);
  expect(await workspacesOf(place)).toEqual([]);
  for (const name of ["sandboxes", "egress", "control"]) expect(namesIn(join(place.dataFolder, name))).toEqual([]);
  await vi.waitFor(() => expect(containers(() => engine).processes(server)).toEqual([]), PATIENCE);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Nobody ever needed it.
    return [];
  }
}
