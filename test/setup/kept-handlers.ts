import { createHash, randomUUID } from "node:crypto";
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

/** What servers have learned of the handlers of tests. A server compiles again what does not fit its own code. */
const KEPT = resolve(import.meta.dirname, "../../node_modules/.cache/owlclaw-test-handlers");
const FILES = ["typescript-handlers.json", "handler-reports.json"];

/**
 * Most of a start in tests would go into compiling the same handlers again: a data folder begins with what the servers of
 * other files have kept. Tests of compiling and loading have handlers of their own.
 */
export function seedHandlers(dataFolder: string, handlers: string): void {
  const to = cacheOf(dataFolder);
  try {
    if (existsSync(keptOf(handlers)) && !existsSync(to)) cpSync(keptOf(handlers), to, COPY);
  } catch {
    // Another process has just replaced it: the server compiles.
    rmSync(to, { recursive: true, force: true });
  }
}

/** Once a server has ended: what it has learned is for those that start later. */
export function keepHandlers(dataFolder: string, handlers: string): void {
  const from = cacheOf(dataFolder);
  const kept = keptOf(handlers);
  if (FILES.every((name) => changedMs(join(from, name)) <= changedMs(join(kept, name)))) return;
  const [fresh, old] = [`${kept}.${randomUUID()}`, `${kept}.${randomUUID()}`];
  try {
    mkdirSync(KEPT, { recursive: true });
    cpSync(from, fresh, COPY);
    if (existsSync(kept)) renameSync(kept, old);
    renameSync(fresh, kept);
  } catch {
    // Another process was faster.
  } finally {
    for (const each of [fresh, old]) rmSync(each, { recursive: true, force: true });
  }
}

const COPY = { recursive: true, preserveTimestamps: true } as const;

function cacheOf(dataFolder: string): string {
  return join(dataFolder, "cache", "handlers");
}

function keptOf(handlers: string): string {
  return join(KEPT, createHash("sha256").update(handlers).digest("hex").slice(0, 16));
}

function changedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
