import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { makePlace } from "../e2e/sandbox-client.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, PATIENCE } from "./engine-lab.ts";

interface RefusingFront {
  readonly host: string;
  /** How often it still refuses to remove each kind of thing, and to make containers. */
  readonly refusals: Record<"containers" | "volumes" | "creates", number>;
}

/** The engine, which refuses to remove and to make things when it is told to. */
async function startFront(folder: string, engine: ContainerEngine): Promise<RefusingFront> {
  const refusals = { containers: 0, volumes: 0, creates: 0 };
  const path = join(folder, "front.sock");
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on("error", () => undefined);
    // The server has a connection for each call.
    near.once("data", (head: Buffer) => {
      const kind = kindOf(head.toString("latin1"));
      if (kind !== undefined && refusals[kind] > 0) {
        refusals[kind] -= 1;
        near.end('HTTP/1.1 500 Busy\r\ncontent-length: 18\r\nconnection: close\r\n\r\n{"message":"busy"}');
      } else pass(near, { head, path: engine.host.slice("unix://".length) });
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return { host: `unix://${path}`, refusals };
}

function kindOf(head: string): keyof RefusingFront["refusals"] | undefined {
  if (head.startsWith("POST /containers/create")) return "creates";
  if (head.startsWith("DELETE /containers/")) return "containers";
  return head.startsWith("DELETE /volumes/") ? "volumes" : undefined;
}

/** Hands a call on to the engine, and its answer back. */
export function pass(near: Socket, { head, path }: { readonly head: Buffer; readonly path: string }): Socket {
  const far = connect({ path, allowHalfOpen: true });
  far.write(head);
  near.pipe(far).pipe(near);
  far.on("error", () => near.destroy());
  near.on("close", () => far.destroy());
  far.on("close", () => near.destroy());
  return far;
}

/** What an engine refuses to remove. */
export function defineRemovalSuite(engine: () => ContainerEngine): void {
  const { open, containersOf, workspacesOf } = engineLab(engine);

  test("what the engine refused to remove is removed when it lets it, at the latest when the server stops", async () => {
    const place = makePlace();
    const { host, refusals } = await startFront(place.folder, engine());
    const { server, client } = await open({ docker: { host } }, place);
    const [first] = [await openInside(client), await openInside(client)];
    Object.assign(refusals, { containers: 1, volumes: 1 });
    expect((await first.call("sandbox_destroy")).structuredContent).toMatchObject({ destroyed: true });
    await server.logged("a container is left until the engine can remove it");
    await vi.waitFor(async () => {
      expect(refusals).toMatchObject({ containers: 0, volumes: 0 });
      expect(await containersOf(place, "-a")).toHaveLength(1);
      expect(await workspacesOf(place)).toHaveLength(1);
    }, PATIENCE);
    Object.assign(refusals, { volumes: 1 });
    expect(await server.stop()).toBe(0);
    expect(refusals).toMatchObject({ containers: 0, volumes: 0 });
    expect(await containersOf(place, "-a")).toEqual([]);
    expect(await workspacesOf(place)).toEqual([]);
  });

  test("a warm container that the engine does not make leaves no workspace", async () => {
    const place = makePlace();
    const { host, refusals } = await startFront(place.folder, engine());
    const { server, client, origin } = await open({ docker: { host }, pool: { size: 1 } }, place);
    const pooled = 'owlclaw_sandboxes{state="pooled",runtime="docker",template="python"} 1\n';
    const isFull = async (): Promise<void> => expect(await (await fetch(`${origin}/metrics`)).text()).toContain(pooled);
    await vi.waitFor(isFull, PATIENCE);
    refusals.creates = 3;
    await openInside(client);
    await vi.waitFor(async () => {
      expect(refusals.creates).toBe(0);
      await isFull();
    }, PATIENCE);
    expect(await workspacesOf(place), "the one in use, and the one that waits").toHaveLength(2);
    expect(await server.stop()).toBe(0);
    expect(await workspacesOf(place)).toEqual([]);
  });
}
