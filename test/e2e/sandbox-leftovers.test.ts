import { mkdirSync, readdirSync, utimesSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { once } from "node:events";
import { expect, test } from "vitest";
import { keptOf } from "../escape/sandbox-remains.ts";
import { call, connectHttp, makePlace, Server } from "./sandbox-client.ts";

const NETWORK = { network: { allow: ["example.com"] } };

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
