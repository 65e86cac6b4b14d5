import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { serverIds } from "../escape/sandbox-lab.ts";
import { keptOf, NOTHING_KEPT } from "../escape/sandbox-remains.ts";
import { call, connectHttp, makePlace, type Place, Server } from "./sandbox-client.ts";

const NETWORK = { network: { allow: ["example.com"] } };
const PATIENCE = { timeout: 45_000, interval: 20 };

test("sockets that a killed server left are removed by the next one, and those of a living server are not", async () => {
  const place = makePlace();
  const egress = join(place.dataFolder, "egress");
  const living = new Server(place, { sandbox: NETWORK });
  await call(await connectHttp(await living.url()), "sandbox_create");
  const doomed = new Server(place, { sandbox: NETWORK });
  await call(await connectHttp(await doomed.url()), "sandbox_create");
  const ofLiving = readdirSync(join(place.dataFolder, "control")).filter((name) => name !== `${doomed.child.pid}.sock`);
  expect(readdirSync(egress)).toHaveLength(2);
  await doomed.stop("SIGKILL");
  expect(readdirSync(egress), "it had no time to clear up").toHaveLength(2);

  // Without a network of its own it has no doors, and clears up all the same.
  const next = new Server(place, {});
  await next.url();
  const { doors, controls } = await keptOf(place, []);
  expect(doors).toHaveLength(1);
  expect(controls.toSorted()).toEqual([...ofLiving, `${next.child.pid}.sock`].toSorted());
  const client = await connectHttp(await living.url());
  expect((await call(client, "sandbox_create")).structuredContent).toMatchObject({ network: ["example.com"] });

  await next.stop();
  await living.stop();
  expect(await keptOf(place, [])).toMatchObject({ doors: [], controls: [] });
});

test("of folders without a socket only old ones are removed: a new one may be about to get its socket", async () => {
  const place = makePlace();
  const egress = join(place.dataFolder, "egress");
  for (const name of ["d-old", "d-young", "foreign"]) mkdirSync(join(egress, name), { recursive: true });
  for (const name of ["d-old", "foreign"]) utimesSync(join(egress, name), new Date(0), new Date(0));
  const deep = join(egress, "d-inuse");
  mkdirSync(deep);
  const listener = createServer().listen(join(deep, "s"));
  await once(listener, "listening");
  const server = new Server(place, {});
  await server.url();
  expect(readdirSync(egress).toSorted()).toEqual(["d-inuse", "d-young", "foreign"]);
  await server.stop();
  listener.close();
});

/** A server whose warm sandbox is claimed; the next one has this guest. */
async function refillWith(guest: string): Promise<{ readonly place: Place; readonly server: Server }> {
  const place = makePlace();
  const server = new Server(place, { sandbox: { runtime: "bubblewrap", pool: { size: 1 } } });
  const url = await server.url();
  const pooled = 'owlclaw_sandboxes{state="pooled",runtime="bubblewrap",template="python"} 1\n';
  await vi.waitFor(
    async () => expect(await (await fetch(new URL("/metrics", url))).text()).toContain(pooled),
    PATIENCE,
  );
  const [id = ""] = serverIds(place);
  writeFileSync(join(place.dataFolder, "bubblewrap", "guests", id, "guest.mjs"), guest);
  await call(await connectHttp(url), "sandbox_create");
  return { place, server };
}

test("a warm sandbox that does not start leaves nothing, however often it is tried", async () => {
  const { place, server } = await refillWith("process.exit(1);");
  const failures = (): unknown[] => server.log.filter(({ message }) => message === "the warm pool could not be filled");
  await vi.waitFor(() => expect(failures().length).toBeGreaterThan(1), PATIENCE);
  const inUse = { sandboxes: [expect.any(String)], cells: [expect.any(String)] };
  await vi.waitFor(async () => expect(await keptOf(place, [])).toMatchObject(inUse), PATIENCE);
  expect(await server.stop()).toBe(0);
  expect(await keptOf(place, [])).toEqual(NOTHING_KEPT);
});

test("a server that stops while a warm sandbox starts leaves nothing of it", async () => {
  const { place, server } = await refillWith("setInterval(() => undefined, 1000);");
  await vi.waitFor(async () => expect((await keptOf(place, [])).sandboxes).toHaveLength(2), PATIENCE);
  expect(await server.stop()).toBe(0);
  expect(await keptOf(place, [])).toEqual(NOTHING_KEPT);
});
