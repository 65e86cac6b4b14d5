import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PauseFiles } from "../../../src/governance/pause-files.ts";
import { EVERYBODY, Pauses } from "../../../src/governance/pauses.ts";
import { createLogger, type Logger, SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "owlclaw-pauses-"));
  path = join(folder, "data", "paused");
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function pause(client: string): Parameters<Pauses["pause"]>[0] {
  return { client, by: "root", reason: "why not", since: "2026-11-15T00:00:00.000Z" };
}

function open(logger: Logger = SILENT_LOGGER): Promise<Pauses> {
  return Pauses.open(new PauseFiles(path), logger);
}

test("holds at once, for the one named and nobody else, and survives a restart", async () => {
  const pauses = await open();
  const written = pauses.pause(pause("ada"));
  expect(() => pauses.check("ada")).toThrow("an operator has paused your calls: why not");
  expect(() => pauses.check("eve")).not.toThrow();
  await written;
  const later = await open();
  expect(() => later.check("ada")).toThrow("paused");
  expect(await later.resume("ada")).toBe(true);
  expect(await later.resume("ada")).toBe(false);
  expect((await open()).list()).toEqual([]);
});

test("of everybody ends without the pauses of single clients", async () => {
  const pauses = await open();
  await pauses.pause(pause("ada"));
  await pauses.pause(pause(EVERYBODY));
  expect(() => pauses.check("eve")).toThrow("an operator has paused all calls");
  await pauses.resume(EVERYBODY);
  expect(() => pauses.check("eve")).not.toThrow();
  expect(() => pauses.check("ada")).toThrow("paused");
});

test("that another server of the folder sets is followed", async () => {
  const [here, there] = [await open(), await open()];
  here.watch();
  const changed = new Promise<void>((resolve) => here.onChange(() => resolve()));
  await there.pause(pause("ada"));
  await changed;
  expect(() => here.check("ada")).toThrow("paused");
  await here.close();
});

test("in a file that nobody can read keeps the server from starting; a running one stays as it was", async () => {
  const running = await open();
  await running.pause(pause("ada"));
  const lines: string[] = [];
  const logger = createLogger({ level: "error", format: "json", write: (line) => void lines.push(line) });
  const follower = await open(logger);
  follower.watch();
  const [name = ""] = readdirSync(path);
  const file = join(path, name);
  writeFileSync(file, "{ not json");
  await expect(open()).rejects.toThrow("does not say who is paused");
  await vi.waitFor(() => expect(lines.join("")).toContain("cannot be read"), { timeout: 8000 });
  expect(() => follower.check("ada")).toThrow("paused");
  await follower.close();
  expect(readFileSync(file, "utf8")).toBe("{ not json");
});

test("by several servers of the folder at the same moment are all kept, and so are ends of them", async () => {
  const servers = await Promise.all(Array.from({ length: 3 }, () => open()));
  const clients = servers.map((_, at) => Array.from({ length: 10 }, (__, index) => `client-${at}-${index}`));
  const all = (change: (server: Pauses, client: string) => Promise<unknown>): Promise<unknown> =>
    Promise.all(servers.flatMap((server, at) => (clients[at] ?? []).map((client) => change(server, client))));
  const onDisk = async (): Promise<string[]> => (await open()).list().map(({ client }) => client);
  await all((server, client) => server.pause(pause(client)));
  expect((await onDisk()).toSorted()).toEqual(clients.flat().toSorted());
  await all((server, client) => (client.endsWith("0") ? Promise.resolve() : server.resume(client)));
  expect((await onDisk()).toSorted()).toEqual(["client-0-0", "client-1-0", "client-2-0"]);
});

test("of clients whose names look alike, or are no names of files, stand side by side", async () => {
  const pauses = await open();
  const clients = ["a/b", "a_b", "../../a", ".", "x".repeat(256), "x".repeat(255), "ä\u0000"];
  for (const client of clients) await pauses.pause(pause(client));
  const later = await open();
  expect(
    later
      .list()
      .map(({ client }) => client)
      .toSorted(),
  ).toEqual(clients.toSorted());
  for (const client of clients) expect(await later.resume(client)).toBe(true);
  expect(readdirSync(path)).toEqual([]);
});

test("that cannot be written hold here all the same, and one that cannot be ended on disk stays", async () => {
  const pauses = await open();
  mkdirSync(join(folder, "data"));
  writeFileSync(path, "no folder");
  await expect(pauses.pause(pause("ada"))).rejects.toThrow(/E(NOTDIR|EXIST)/);
  expect(() => pauses.check("ada")).toThrow("paused");
  await expect(pauses.resume("ada")).rejects.toThrow(/E(NOTDIR|EXIST)/);
  expect(() => pauses.check("ada")).toThrow("paused");
  rmSync(path);
  expect(await pauses.resume("ada")).toBe(true);
  expect(() => pauses.check("ada")).not.toThrow();
  await pauses.pause(pause("eve"));
  const [name = ""] = readdirSync(path);
  writeFileSync(join(path, name), "{ not json");
  await expect(pauses.resume("eve")).rejects.toThrow("does not say who is paused");
  expect(() => pauses.check("eve")).toThrow("paused");
});

/** Answers what was there when it was asked, as late as the test wants. */
class SlowFiles extends PauseFiles {
  gate: Promise<void> = Promise.resolve();

  override async read(): ReturnType<PauseFiles["read"]> {
    const found = await super.read();
    await this.gate;
    return found;
  }
}

test("that are written while the store is asked are not lost to an answer from before", async () => {
  const store = new SlowFiles(path);
  const pauses = await Pauses.open(store, SILENT_LOGGER);
  let answer = (): void => undefined;
  store.gate = new Promise((resolve) => (answer = resolve));
  const looked = pauses.look();
  await pauses.pause(pause("ada"));
  answer();
  await looked;
  expect(() => pauses.check("ada")).toThrow("paused");
});
