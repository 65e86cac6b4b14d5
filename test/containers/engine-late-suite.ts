import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { BIN, call, makePlace, type Place } from "../e2e/sandbox-client.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, PATIENCE } from "./engine-lab.ts";

/** Servers that are there before the engine, or the image, that they need. */
export function defineLateSuite(engine: () => ContainerEngine): void {
  const { open, containersOf, workspacesOf } = engineLab(engine);

  test("auto on a machine without bubblewrap serves when an engine comes, and when its image does", async () => {
    const { cli, image } = engine();
    const { folder } = makePlace();
    const socket = join(folder, "later.sock");
    const sandbox = { runtime: "auto", image: `${image}-auto`, docker: { host: `unix://${socket}` } };
    const { server, client, health } = await open(sandbox, withoutBubblewrap());
    await expect(call(client, "sandbox_create")).rejects.toThrow(/bubblewrap/);
    expect(await health()).toBe(503);
    symlinkSync(engine().host.slice("unix://".length), socket);
    const create = (): Promise<unknown> => call(client, "sandbox_create");
    await vi.waitFor(async () => {
      await expect(create()).rejects.toThrow(/bubblewrap.*; the engine has no image/);
    }, PATIENCE);
    await cli("tag", image, `${image}-auto`);
    await vi.waitFor(async () => expect(await health()).toBe(200), PATIENCE);
    expect(await (await openInside(client)).sh("echo served")).toBe("served\n");
    await server.stop();
  });

  test("an engine that only a template uses is in health before anybody needs it, and is rid of what a dead server left", async () => {
    const { image } = engine();
    const place = makePlace();
    const socket = join(place.folder, "later.sock");
    const wish = { runtime: "bubblewrap", templates: { boxed: { image } } };
    const killed = await open({ ...wish, docker: { host: engine().host } }, place);
    await openInside(killed.client, { template: "boxed" });
    await killed.server.stop("SIGKILL");
    expect(await workspacesOf(place)).toHaveLength(1);
    const { server, client, origin } = await open({ ...wish, docker: { host: `unix://${socket}` } }, place);
    const runtime = async (): Promise<unknown> =>
      ((await (await fetch(`${origin}/health`)).json()) as { checks: Record<string, unknown> }).checks["runtime"];
    const message = "sandboxes of boxed cannot start: the container engine cannot be reached";
    await vi.waitFor(async () => expect(await runtime()).toMatchObject({ status: "degraded", message }), PATIENCE);
    symlinkSync(engine().host.slice("unix://".length), socket);
    expect(await (await openInside(client)).sh("echo served")).toBe("served\n");
    await vi.waitFor(async () => expect(await runtime()).toMatchObject({ status: "ok" }), PATIENCE);
    expect(await workspacesOf(place)).toEqual([]);
    expect(await containersOf(place, "-a")).toEqual([]);
    expect(await server.stop()).toBe(0);
  });
}

/** A machine of its own, as far as that program goes. */
function withoutBubblewrap(): Place {
  const place = makePlace();
  const node = join(place.folder, "node");
  const hidden = "mount --bind /dev/null /usr/bin/bwrap";
  writeFileSync(
    node,
    `#!/bin/sh\nexec unshare --mount sh -c '${hidden} && exec "$@"' sh '${process.execPath}' "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const account = { uid: 0, node, main: BIN, folder: place.folder, remove: () => undefined };
  return { ...place, account };
}
