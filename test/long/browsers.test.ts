import { expect, test, vi } from "vitest";
import { destroyCrowd, openCrowd } from "../e2e/browser-crowd.ts";
import { siteSettings } from "../e2e/browser-site.ts";
import { connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { instanceIds, type HostProcess, processesOf, serverIds } from "../escape/sandbox-lab.ts";
import { chargedTo, keptOf, NOTHING_RUNS, runningOf } from "../escape/sandbox-remains.ts";

const CROWD = 20;
/** The browser itself, its zygotes, and a page. */
const LEAST_PROCESSES = 4;

const PATIENCE = { timeout: 60_000, interval: 100 };
/** Pages that several sandboxes read, such as the browser's own program, are counted for whoever read them first. */
const MOST_OF_HALF = 0.8;
/** What the kernel itself keeps for the groups, as a share of what browsers take. */
const TRACE = 0.02;

function isBrowser({ command, state }: HostProcess): boolean {
  return command.includes("chromium") && state !== "Z";
}

test("twenty sandboxes with a browser each share nothing, and leave nothing: half are destroyed, then the server is killed", async () => {
  const place = makePlace();
  const limits = { maxPerPrincipal: CROWD, maxTotalMemoryMb: 100_000 };
  const settings = siteSettings({ sandbox: { ...limits, pool: { size: 0 } } });
  const server = new Server(place, settings);
  const client = await connectHttp(await server.url());
  const ids = serverIds(place);
  const crowd = await openCrowd(client, CROWD);
  const all = await chargedTo(ids);
  expect(all.cells).toHaveLength(CROWD);
  expect(processesOf(ids).filter(isBrowser).length).toBeGreaterThanOrEqual(CROWD * LEAST_PROCESSES);

  await destroyCrowd(client, crowd.slice(0, CROWD / 2));
  const half = await vi.waitFor(async () => {
    const charged = await chargedTo(ids);
    expect(charged.cells).toHaveLength(CROWD / 2);
    return charged;
  }, PATIENCE);
  expect(all.cells).toEqual(expect.arrayContaining([...half.cells]));
  expect(instanceIds(place).toSorted()).toEqual(half.cells.toSorted());
  const cellsWithProcesses = (): string[] => [...new Set(processesOf(ids).map(({ cell }) => cell))].toSorted();
  await vi.waitFor(() => expect(cellsWithProcesses()).toEqual(half.cells.toSorted()), PATIENCE);
  expect(processesOf(ids).filter(isBrowser).length).toBeGreaterThanOrEqual((CROWD / 2) * LEAST_PROCESSES);
  expect(half.bytes).toBeLessThan(all.bytes * MOST_OF_HALF);

  await server.stop("SIGKILL");
  await vi.waitFor(() => expect(runningOf(place, ids)).toMatchObject({ processes: [], mounts: [] }), PATIENCE);
  await vi.waitFor(async () => expect((await chargedTo(ids)).bytes).toBeLessThan(all.bytes * TRACE), PATIENCE);
  const next = new Server(place, settings);
  await next.url();
  expect(await keptOf(place, ids)).toMatchObject({ sandboxes: [], cells: [], uids: [], groups: [], doors: [] });
  expect(runningOf(place, ids)).toEqual(NOTHING_RUNS);
  expect(await next.stop()).toBe(0);
});
