import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type HostProcess, processesOf, processesOfUser, serverIds } from "../escape/sandbox-lab.ts";
import { chargedTo, keptOf, NOTHING_RUNS, runningOf } from "../escape/sandbox-remains.ts";
import { eventually } from "../escape/http-client.ts";
import { destroyCrowd, openCrowd } from "./browser-crowd.ts";
import { ALL_TOOLSETS, siteSettings } from "./browser-site.ts";
import { type Account, makeOrdinaryAccount } from "./sandbox-account.ts";
import { call, connectHttp, makePlace, readText, Server } from "./sandbox-client.ts";

/** Enough to get in each other's way; test/long has twenty. */
const CROWD = 3;

/** A browser is a dozen processes, and this machine may run many at once. */
const CROWD_TIMEOUT_MS = 240_000;

const PATIENCE = { timeout: 60_000, interval: 50 };
/** What the kernel itself keeps for the groups, as a share of what browsers take. */
const TRACE = 0.02;

function isBrowser({ command, state }: HostProcess): boolean {
  return command.includes("chromium") && state !== "Z";
}

test(
  "browsers of several sandboxes share nothing, and nothing of them is left after the sandbox: no process, file or memory",
  async () => {
    const place = makePlace();
    const server = new Server(place, siteSettings({ sandbox: { pool: { size: 0 } } }));
    const client = await connectHttp(await server.url());
    const ids = serverIds(place);
    const crowd = await openCrowd(client, CROWD);
    expect(processesOf(ids).filter(isBrowser).length).toBeGreaterThanOrEqual(CROWD);
    const { cells, bytes } = await chargedTo(ids);
    expect(cells).toHaveLength(CROWD);
    await destroyCrowd(client, crowd);
    await vi.waitFor(() => expect(runningOf(place, ids)).toEqual(NOTHING_RUNS), PATIENCE);
    expect(await keptOf(place, ids)).toMatchObject({ sandboxes: [], cells: [], uids: [], doors: [] });
    await vi.waitFor(async () => {
      const after = await chargedTo(ids);
      expect(after.cells).toEqual([]);
      expect(after.bytes).toBeLessThan(bytes * TRACE);
    }, PATIENCE);
    expect(await server.stop()).toBe(0);
  },
  CROWD_TIMEOUT_MS,
);

test(
  "nothing of a browser is left when the server is killed: no process and no memory, and after the next server's start no file",
  async () => {
    const place = makePlace();
    const settings = siteSettings({ sandbox: { pool: { size: 0 } } });
    const server = new Server(place, settings);
    const client = await connectHttp(await server.url());
    const ids = serverIds(place);
    await openCrowd(client, 1);
    expect(processesOf(ids).filter(isBrowser).length).toBeGreaterThan(2);
    const { bytes } = await chargedTo(ids);
    await server.stop("SIGKILL");
    // A disk is let go when all that was written is in its image; the next server waits for that.
    const { loopDevices: _later, ...soon } = NOTHING_RUNS;
    await vi.waitFor(() => expect(runningOf(place, ids)).toMatchObject(soon), PATIENCE);
    await vi.waitFor(async () => expect((await chargedTo(ids)).bytes).toBeLessThan(bytes * TRACE), PATIENCE);
    const next = new Server(place, settings);
    await next.url();
    expect(await keptOf(place, ids)).toMatchObject({ sandboxes: [], cells: [], uids: [], groups: [], doors: [] });
    expect(runningOf(place, ids)).toEqual(NOTHING_RUNS);
    expect(await next.stop()).toBe(0);
  },
  CROWD_TIMEOUT_MS,
);

let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());

test("an ordinary user's server has the browser too", async () => {
  const settings = { tools: { toolsets: ALL_TOOLSETS }, sandbox: { limits: "best-effort" } };
  const server = new Server(makePlace(account), settings);
  const client = await connectHttp(await server.url());
  await call(client, "file_write", { path: "page.html", content: "<title>Mine</title><button>Press</button>" });
  const opened = await call(client, "browser_goto", { url: "file:///workspace/page.html" });
  expect(readText(opened).head).toBe("browser_goto ok: file:///workspace/page.html (Mine)");
  const seen = await call(client, "browser_snapshot");
  expect(seen.structuredContent).toMatchObject({ elements: '[ref_1] button "Press"' });
  expect((await call(client, "browser_screenshot", { path: "a.png" })).isError).toBeUndefined();
  await server.stop();
  const left = (): HostProcess[] => processesOfUser(account.uid).filter(isBrowser);
  await eventually(left, (found) => found.length === 0);
});
