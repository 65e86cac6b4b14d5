import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { call, connectHttp, makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { type Inside, openInside, textOf } from "./sandbox-lab.ts";

/** Folders of a sandbox that resist: its own owner may not look into them, or their path is longer than any that the system takes. */
const WITHOUT_RIGHTS = "mkdir -p d/e && touch d/f d/e/g && chmod 000 d/e d";
const TOO_DEEP = `python3 -c '
import os
name = "n" * 200
for _ in range(3000):
    os.mkdir(name)
    os.chdir(name)
open("f", "w").close()'`;
const NO_TEXT = `python3 -c 'import os; os.makedirs(b"\\xff\\xfe/\\xfd"); os.chmod(b"\\xff\\xfe", 0)'`;
const NO_WAY_IN = "touch f; chmod 000 /workspace";

const PATIENCE = { timeout: 60_000, interval: 50 };
const SETTINGS = { sandbox: { runtime: "bubblewrap", limits: "best-effort" } };

let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());

async function openServer(place: Place): Promise<{ server: Server; url: string; open: () => Promise<Inside> }> {
  const server = new Server(place, SETTINGS);
  const url = await server.url();
  return { server, url, open: async () => openInside(await connectHttp(url)) };
}

const foldersOf = ({ dataFolder }: Place): string[] => {
  const folder = join(dataFolder, "sandboxes");
  return existsSync(folder) ? readdirSync(folder) : [];
};

const runtimeHealth = async (url: string): Promise<unknown> =>
  ((await (await fetch(new URL("/health", url))).json()) as { checks: Record<string, unknown> }).checks["runtime"];

describe("a server of an ordinary user", () => {
  let place: Place;
  let running: Awaited<ReturnType<typeof openServer>>;
  beforeAll(async () => {
    place = makePlace(account);
    running = await openServer(place);
  });

  test.each([
    ["a folder without rights", WITHOUT_RIGHTS],
    ["a path of 600,000 characters", TOO_DEEP],
    ["names that are no text", NO_TEXT],
    ["a workspace without rights", NO_WAY_IN],
  ])("removes %s with its sandbox", async (_what, command) => {
    const inside = await running.open();
    await inside.sh(command);
    expect(textOf(await inside.call("sandbox_destroy"))).toContain("and its files are gone");
    expect(foldersOf(place)).toEqual([]);
  });

  test("removes a folder without rights and a path of 600,000 characters that a killed one left, and serves sandboxes", async () => {
    for (const command of [WITHOUT_RIGHTS, TOO_DEEP]) await (await running.open()).sh(command);
    expect(foldersOf(place)).toHaveLength(2);
    await running.server.stop("SIGKILL");
    running = await openServer(place);
    expect(await (await running.open()).sh("echo works")).toBe("works\n");
    expect(foldersOf(place)).toHaveLength(1);
    await running.server.stop();
    expect(foldersOf(place)).toEqual([]);
  });
});

describe("what really cannot be removed", () => {
  /** In the workspace of the only sandbox, and of another user. */
  function leaveForeignFolder(place: Place): void {
    const [cell = ""] = foldersOf(place);
    const folder = join(place.dataFolder, "sandboxes", cell, "files", "workspace", "foreign");
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, "file"), "");
  }

  function giveBack(place: Place): void {
    execFileSync("chown", ["-R", String(account.uid), join(place.dataFolder, "sandboxes")]);
  }

  test.beforeEach((context) => {
    if (process.getuid?.() !== 0) context.skip("only root can make a folder that its user cannot remove");
  });

  test("is said to who destroys the sandbox and in /health, keeps nobody else, and is tried again", async () => {
    const place = makePlace(account);
    const { server, url, open } = await openServer(place);
    const inside = await open();
    leaveForeignFolder(place);
    const destroyed = await inside.call("sandbox_destroy");
    expect(destroyed.structuredContent).toMatchObject({ destroyed: true, files_left: true });
    expect(textOf(destroyed)).toContain("its files are not yet");
    expect(textOf(destroyed)).not.toContain(place.folder);
    expect(await runtimeHealth(url)).toMatchObject({ status: "degraded" });
    expect(await (await open()).sh("echo works")).toBe("works\n");

    expect(foldersOf(place)).toHaveLength(2);
    giveBack(place);
    await vi.waitFor(async () => expect(await runtimeHealth(url)).toMatchObject({ status: "ok" }), PATIENCE);
    expect(foldersOf(place)).toHaveLength(1);
    await server.stop();
  });

  test("does not keep the next server from starting, and is removed by it as soon as it can be", async () => {
    const place = makePlace(account);
    const killed = await openServer(place);
    await (await killed.open()).sh("true");
    leaveForeignFolder(place);
    await killed.server.stop("SIGKILL");

    const next = await openServer(place);
    const client = await connectHttp(next.url);
    const made = await call(client, "sandbox_create");
    expect(textOf(made)).toMatch(/^sandbox_create ok/);
    expect(await runtimeHealth(next.url)).toMatchObject({ status: "degraded" });
    await next.server.stop();

    expect(foldersOf(place)).toHaveLength(1);
    giveBack(place);
    const last = await openServer(place);
    await last.open();
    expect(foldersOf(place)).toHaveLength(1);
    await last.server.stop();
  });
});
