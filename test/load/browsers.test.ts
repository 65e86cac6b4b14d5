import { expect, test } from "vitest";
import { destroyCrowd, openCrowd } from "../e2e/browser-crowd.ts";
import { siteSettings } from "../e2e/browser-site.ts";
import { connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { eventually } from "../escape/http-client.ts";
import { type HostProcess, processesBelow } from "../escape/sandbox-lab.ts";

const CROWD = 20;

test("twenty sandboxes with a browser each share nothing, and leave nothing", async () => {
  const server = new Server(
    makePlace(),
    siteSettings({ sandbox: { maxPerPrincipal: CROWD, maxTotalMemoryMb: 100_000 } }),
  );
  const client = await connectHttp(await server.url());
  const crowd = await openCrowd(client, CROWD);
  const browsers = (): HostProcess[] =>
    processesBelow(server.child.pid).filter(({ command, state }) => command.includes("chromium") && state !== "Z");
  expect(browsers().length).toBeGreaterThanOrEqual(CROWD * 4);
  await destroyCrowd(client, crowd);
  await eventually(browsers, (left) => left.length === 0);
});
