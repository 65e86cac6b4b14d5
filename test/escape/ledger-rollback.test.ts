import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { runCli } from "../integration/cli-process.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { type HttpServerProcess, MANY_CALLS, startHttp } from "./server.ts";

/** Somebody who can write the data folder, and does not have the keys, takes rows away and lets the server go on. */
const servers: HttpServerProcess[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(data: string): Promise<HttpServerProcess> {
  const keys = join(data, "..", "keys");
  const config = { sandbox: { root: data, enabled: false }, ledger: { keyFolder: keys, checkpointEvery: 10 } };
  const server = await startHttp({ config: { ...config, governance: { defaults: MANY_CALLS } } });
  servers.push(server);
  return server;
}

async function stop(server: HttpServerProcess): Promise<void> {
  server.kill("SIGTERM");
  await server.exited;
}

async function call(server: HttpServerProcess, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    const params = { name: "echo", arguments: { text: `call ${n}` } };
    const answer = await fetch(`${server.origin}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params }),
    });
    expect(await answer.json()).toHaveProperty("result");
  }
}

async function lossCheck(server: HttpServerProcess): Promise<unknown> {
  const answer = await fetch(`${server.origin}/health`);
  const { checks } = (await answer.json()) as { readonly checks: Readonly<Record<string, unknown>> };
  return checks["ledger_loss"];
}

const ledger = (data: string, ...args: string[]): ReturnType<typeof runCli> =>
  runCli(["mcp-server", "ledger", ...args], {
    cwd: temporaryFolder(),
    env: { SANDBOX_ROOT: data, MCP_SERVER_LEDGER_KEY_FOLDER: join(data, "..", "keys") },
  });

const filesOf = (data: string): string[] => readdirSync(data).filter((name) => name.startsWith("ledger.db"));

function copyLedger(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of filesOf(from)) cpSync(join(from, name), join(to, name));
}

function removeLedger(data: string): void {
  for (const name of filesOf(data)) rmSync(join(data, name));
}

const ATTACKS = {
  "an older ledger is put back": (data: string, older: string): void => {
    removeLedger(data);
    copyLedger(older, data);
  },
  "the ledger is deleted": (data: string): void => removeLedger(data),
};

const [FIRST_ATTACK] = Object.keys(ATTACKS);

test.each(Object.entries(ATTACKS))(
  "when %s, the loss is reported until an operator acknowledges it by name",
  async (what, attack) => {
    const folder = temporaryFolder();
    const [data, older] = [join(folder, "data"), join(folder, "older")];
    const first = await start(data);
    await call(first, 5);
    await stop(first);
    copyLedger(data, older);
    const second = await start(data);
    await call(second, 30);
    expect(await lossCheck(second)).toMatchObject({ status: "ok" });
    await stop(second);

    attack(data, older);
    const third = await start(data);
    expect(third.log()).toContain("The ledger has lost rows");
    // More rows than were lost: the new chain is longer than the one that was signed.
    await call(third, 60);
    expect(await lossCheck(third)).toMatchObject({ status: "degraded" });
    await stop(third);
    const fourth = await start(data);
    expect(await lossCheck(fourth)).toMatchObject({ status: "degraded" });
    const found = await ledger(data, "verify");
    expect({ code: found.code, said: found.out }).toEqual({
      code: 1,
      said: expect.stringMatching(/loss: rows \d+ to \d+ were lost/),
    });
    // What an operator does about it is the same for all.
    if (what !== FIRST_ATTACK) return;
    const row = /row (\d+): loss/.exec(found.out)?.[1] ?? "";

    const wrong = await ledger(data, "acknowledge", "99", "--by", "Ada Lovelace");
    expect(wrong.code).not.toBe(0);
    expect((await ledger(data, "acknowledge", row, "--by", "Ada Lovelace")).code).toBe(0);
    await expect.poll(() => lossCheck(fourth)).toMatchObject({ status: "ok" });
    await call(fourth, 3);
    const verified = await ledger(data, "verify");
    expect({ code: verified.code, said: verified.out }).toEqual({
      code: 0,
      said: expect.stringContaining("Ada Lovelace has acknowledged"),
    });
  },
);

test("a ledger that was rewritten beyond its newest signed head is a loss too", async () => {
  const folder = temporaryFolder();
  const [data, older] = [join(folder, "data"), join(folder, "older")];
  const first = await start(data);
  await call(first, 5);
  await stop(first);
  copyLedger(data, older);
  const keptKeys = join(folder, "kept-keys");
  cpSync(join(folder, "keys"), keptKeys, { recursive: true });
  // A copy of the server's own makes a longer ledger with the same keys, from the older rows.
  const forked = await start(data);
  await call(forked, 60);
  await stop(forked);
  const fork = join(folder, "fork");
  copyLedger(data, fork);
  removeLedger(data);
  copyLedger(older, data);
  rmSync(join(folder, "keys"), { recursive: true });
  cpSync(keptKeys, join(folder, "keys"), { recursive: true });
  const second = await start(data);
  await call(second, 30);
  await stop(second);
  removeLedger(data);
  copyLedger(fork, data);
  const third = await start(data);
  expect(await lossCheck(third)).toMatchObject({ status: "degraded" });
  const { code, out } = await ledger(data, "verify");
  expect({ code, said: out }).toEqual({ code: 1, said: expect.stringMatching(/loss: row \d+ was replaced/) });
});

test("an orderly stop and start, and retention, are no loss", async () => {
  const folder = temporaryFolder();
  const data = join(folder, "data");
  for (let round = 0; round < 3; round += 1) {
    const server = await start(data);
    await call(server, 12);
    expect(await lossCheck(server)).toMatchObject({ status: "ok" });
    if (round === 1) server.kill("SIGKILL");
    await (round === 1 ? server.exited : stop(server));
  }
  expect((await ledger(data, "verify")).code).toBe(0);
  expect(existsSync(join(folder, "keys", "ledger-loss.json"))).toBe(false);
});
