import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { call, makePlace, Server } from "../e2e/sandbox-client.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, PATIENCE } from "./engine-lab.ts";
import { pass } from "./engine-removal-suite.ts";
import { settingsFor } from "./engine-runtime.ts";

interface LosingFront {
  readonly host: string;
  /** Calls of which the first never reaches the engine. */
  held: RegExp | undefined;
  /** Calls of which the first is done by the engine, whose answer nobody hears. */
  lost: RegExp | undefined;
}

/** The engine, behind a line that loses what it is told to. */
async function startFront(folder: string, engine: ContainerEngine): Promise<LosingFront> {
  const path = join(folder, "losing.sock");
  const front: LosingFront = { host: `unix://${path}`, held: undefined, lost: undefined };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on("error", () => undefined);
    near.once("data", (head: Buffer) => {
      const text = head.toString("latin1");
      if (front.held?.test(text) === true) {
        front.held = undefined;
        return;
      }
      const far = pass(near, { head, path: engine.host.slice("unix://".length) });
      if (front.lost?.test(text) !== true) return;
      far.unpipe(near);
      far.resume().once("data", () => {
        front.lost = undefined;
        near.destroy();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return front;
}

/** What nobody knows of any more, or not yet again. */
export function defineLostSuite(engine: () => ContainerEngine): void {
  const { open, containersOf } = engineLab(engine);

  test.each([
    ["looks into a volume", /^HEAD \/containers\/\w+\/archive/],
    ["asks an image", /^POST \/containers\/\w+\/start/],
  ])("a server that is killed while it %s keeps the next one from nothing, and leaves nothing", async (_what, held) => {
    const place = makePlace();
    const front = await startFront(place.folder, engine());
    front.held = held;
    const killed = new Server(place, { sandbox: { ...settingsFor(engine()), docker: { host: front.host } } });
    await vi.waitFor(() => expect(front.held).toBeUndefined(), PATIENCE);
    await killed.stop("SIGKILL");
    expect(await containersOf(place, "-a")).toHaveLength(1);
    const { server, client, health } = await open({}, place);
    await vi.waitFor(async () => expect(await health()).toBe(200), PATIENCE);
    expect(await (await openInside(client)).sh("echo served")).toBe("served\n");
    expect(await server.stop()).toBe(0);
    expect(await containersOf(place, "-a")).toEqual([]);
  });

  test("a container that was made when its answer got lost is removed, by a server that goes on", async () => {
    const place = makePlace();
    const front = await startFront(place.folder, engine());
    const { server, client, health } = await open({ docker: { host: front.host } }, place);
    const inside = await openInside(client);
    front.lost = /^POST \/containers\/create/;
    await expect(call(client, "sandbox_create")).rejects.toThrow(/container engine .* cannot be reached/);
    expect(front.lost).toBeUndefined();
    await vi.waitFor(async () => expect(await containersOf(place, "-a")).toHaveLength(1), PATIENCE);
    expect(await health()).toBe(200);
    expect((await inside.call("shell_exec", { command: "true" })).structuredContent).not.toHaveProperty(
      "sandbox_restarted",
    );
    expect(await server.stop()).toBe(0);
  });

  test("when somebody has removed the volumes of the guest and of Node, the next sandbox brings them back", async () => {
    const { cli } = engine();
    const { server, client, health } = await open();
    const shared = async (): Promise<string[]> =>
      (await cli("volume", "ls", "-q")).split("\n").filter((name) => /^owlclaw-(guest|node)-/.test(name));
    await (await openInside(client)).call("sandbox_destroy");
    const before = await shared();
    expect(before.length).toBeGreaterThan(1);
    await cli("volume", "rm", ...before);
    // Several at once find it out.
    const opened = await Promise.all([openInside(client), openInside(client)]);
    for (const inside of opened) expect(await inside.sh("echo served")).toBe("served\n");
    expect(await health()).toBe(200);
    expect(await shared()).not.toEqual([]);
    expect(await server.stop()).toBe(0);
  });
}
