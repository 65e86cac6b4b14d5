import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openInside } from "../escape/sandbox-lab.ts";
import { type Account, makeOrdinaryAccount } from "./sandbox-account.ts";
import { connectHttp, makePlace, Server } from "./sandbox-client.ts";

let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());

test("a server goes on with its own guest while the installation is updated, removed and put back", async () => {
  // As whoever runs the tests, with an installation that may be broken.
  const place = makePlace({ ...account, uid: process.getuid?.() ?? account.uid });
  const server = new Server(place, { sandbox: { limits: "best-effort" } });
  const client = await connectHttp(await server.url());
  const before = await openInside(client);
  expect(await before.python("print('python before')")).toBe("python before\n");

  const installed = join(account.folder, "dist", "guest");
  const kept = mkdtempSync(join(tmpdir(), "owlclaw-guest-"));
  cpSync(installed, kept, { recursive: true });
  for (const entry of readdirSync(installed, { withFileTypes: true, recursive: true }))
    if (entry.isFile()) writeFileSync(join(entry.parentPath, entry.name), "broken by a new version");
  const node = { code: "6 * 7", language: "node" };
  expect((await before.call("code_run", node)).structuredContent).toMatchObject({ value: "42" });
  expect(await (await openInside(client)).python("print('a new sandbox')")).toBe("a new sandbox\n");

  rmSync(installed, { recursive: true });
  const after = await openInside(client);
  expect(await after.python("print('without an installation')")).toBe("without an installation\n");
  expect((await after.call("code_run", node)).structuredContent).toMatchObject({ value: "42" });

  cpSync(kept, installed, { recursive: true });
  rmSync(kept, { recursive: true });
  expect(await server.stop()).toBe(0);
  expect(readdirSync(join(place.dataFolder, "bubblewrap", "guests"))).toEqual([]);
});
