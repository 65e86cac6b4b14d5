import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EVERYBODY, Pauses } from "../../../src/governance/pauses.ts";
import { createLogger, SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "owlclaw-pauses-"));
  path = join(folder, "data", "paused.json");
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function pause(client: string): Parameters<Pauses["pause"]>[0] {
  return { client, by: "root", reason: "why not", since: "2026-11-15T00:00:00.000Z" };
}

test("holds at once, for the one named and nobody else, and survives a restart", async () => {
  const pauses = new Pauses(path, SILENT_LOGGER);
  const written = pauses.pause(pause("ada"));
  expect(() => pauses.check("ada")).toThrow("an operator has paused your calls: why not");
  expect(() => pauses.check("eve")).not.toThrow();
  await written;
  const later = new Pauses(path, SILENT_LOGGER);
  expect(() => later.check("ada")).toThrow("paused");
  expect(await later.resume("ada")).toBe(true);
  expect(await later.resume("ada")).toBe(false);
  expect(new Pauses(path, SILENT_LOGGER).list()).toEqual([]);
});

test("of everybody ends without the pauses of single clients", async () => {
  const pauses = new Pauses(path, SILENT_LOGGER);
  await pauses.pause(pause("ada"));
  await pauses.pause(pause(EVERYBODY));
  expect(() => pauses.check("eve")).toThrow("an operator has paused all calls");
  await pauses.resume(EVERYBODY);
  expect(() => pauses.check("eve")).not.toThrow();
  expect(() => pauses.check("ada")).toThrow("paused");
});

test("that another server of the folder sets is followed", async () => {
  const [here, there] = [new Pauses(path, SILENT_LOGGER), new Pauses(path, SILENT_LOGGER)];
  here.watch();
  const changed = new Promise<void>((resolve) => here.onChange(resolve));
  await there.pause(pause("ada"));
  await changed;
  expect(() => here.check("ada")).toThrow("paused");
  here.close();
});

test("in a file that nobody can read keeps the server from starting; a running one stays as it was", async () => {
  const running = new Pauses(path, SILENT_LOGGER);
  await running.pause(pause("ada"));
  const lines: string[] = [];
  const logger = createLogger({ level: "error", format: "json", write: (line) => void lines.push(line) });
  const follower = new Pauses(path, logger);
  follower.watch();
  writeFileSync(path, "{ not json");
  expect(() => new Pauses(path, SILENT_LOGGER)).toThrow("does not say who is paused");
  await vi.waitFor(() => expect(lines.join("")).toContain("cannot be read"), { timeout: 8000 });
  expect(() => follower.check("ada")).toThrow("paused");
  follower.close();
  expect(readFileSync(path, "utf8")).toBe("{ not json");
});
