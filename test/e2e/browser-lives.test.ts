import { afterAll, beforeAll, expect, test } from "vitest";
import { allProcesses, type HostProcess, processesBelow, processesOfUser } from "../escape/sandbox-lab.ts";
import { eventually } from "../escape/http-client.ts";
import { destroyCrowd, openCrowd } from "./browser-crowd.ts";
import { ALL_TOOLSETS, siteSettings } from "./browser-site.ts";
import { type Account, makeOrdinaryAccount } from "./sandbox-account.ts";
import { call, connectHttp, makePlace, readText, Server } from "./sandbox-client.ts";

/** Enough to get in each other's way; test/load has twenty. */
const CROWD = 3;

/** A browser is a dozen processes, and this machine may run many at once. */
const CROWD_TIMEOUT_MS = 240_000;

function isBrowser({ command, state }: HostProcess): boolean {
  return command.includes("chromium") && state !== "Z";
}

test(
  "browsers of several sandboxes share nothing, and nothing of them is left after the sandbox",
  async () => {
    const server = new Server(makePlace(), siteSettings());
    const client = await connectHttp(await server.url());
    const crowd = await openCrowd(client, CROWD);
    const browsers = (): HostProcess[] => processesBelow(server.child.pid).filter(isBrowser);
    expect(browsers().length).toBeGreaterThanOrEqual(CROWD);
    await destroyCrowd(client, crowd);
    await eventually(browsers, (left) => left.length === 0);
  },
  CROWD_TIMEOUT_MS,
);

test(
  "nothing of a browser is left when the server is killed",
  async () => {
    const server = new Server(makePlace(), siteSettings());
    const client = await connectHttp(await server.url());
    await openCrowd(client, 1);
    const pids = new Set(
      processesBelow(server.child.pid)
        .filter(isBrowser)
        .map(({ pid }) => pid),
    );
    expect(pids.size).toBeGreaterThan(2);
    await server.stop("SIGKILL");
    const left = (): HostProcess[] => allProcesses().filter((found) => pids.has(found.pid) && isBrowser(found));
    await eventually(left, (found) => found.length === 0);
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
