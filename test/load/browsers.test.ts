import { expect, test } from "vitest";
import { destroyCrowd, openCrowd } from "../e2e/browser-crowd.ts";
import { siteSettings } from "../e2e/browser-site.ts";
import { connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { eventually } from "../escape/http-client.ts";
import { allProcesses, type HostProcess, processesBelow } from "../escape/sandbox-lab.ts";

const CROWD = 20;
/** The browser itself, its zygotes, and a page. */
const LEAST_PROCESSES = 4;

function isBrowser({ command, state }: HostProcess): boolean {
  return command.includes("chromium") && state !== "Z";
}

test("twenty sandboxes with a browser each share nothing, and leave nothing: half are destroyed, then the server is killed", async () => {
  const server = new Server(
    makePlace(),
    siteSettings({ sandbox: { maxPerPrincipal: CROWD, maxTotalMemoryMb: 100_000 } }),
  );
  const client = await connectHttp(await server.url());
  const crowd = await openCrowd(client, CROWD);
  const browsers = (): HostProcess[] => processesBelow(server.child.pid).filter(isBrowser);
  const all = browsers();
  expect(all.length).toBeGreaterThanOrEqual(CROWD * LEAST_PROCESSES);
  const half = crowd.slice(0, CROWD / 2);
  await destroyCrowd(client, half);
  await eventually(browsers, (left) => left.length <= all.length / 2 + LEAST_PROCESSES);
  const pids = new Set(browsers().map(({ pid }) => pid));
  expect(pids.size).toBeGreaterThanOrEqual((CROWD / 2) * LEAST_PROCESSES);
  await server.stop("SIGKILL");
  const left = (): HostProcess[] => allProcesses().filter((found) => pids.has(found.pid) && isBrowser(found));
  await eventually(left, (found) => found.length === 0);
});
