import { readFileSync, statSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Stands for everybody. */
export const EVERYBODY = "*";

/** The calls of a client, or of everybody, are refused until somebody resumes them. */
export interface Pause {
  /** A principal, or `*`. */
  readonly client: string;
  readonly by: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly since: string;
}

const LOOK_MS = 500;
const MAX_PAUSES = 10_000;

const fileSchema = z.strictObject({
  paused: z
    .array(z.strictObject({ client: z.string(), by: z.string(), reason: z.string(), since: z.string() }))
    .max(MAX_PAUSES),
});

/** The switch that stops clients. It is kept in a file of the data folder: it survives a restart, and all servers of the folder follow it. */
export class Pauses {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #listeners = new Set<() => void>();
  #pauses: ReadonlyMap<string, Pause>;
  #version: string;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @throws Error when the file is there and cannot be read: who was paused must not run because of that. */
  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
    // Before it is read: what is written meanwhile is read again.
    this.#version = versionOf(path);
    this.#pauses = readPauses(path);
  }

  list(): readonly Pause[] {
    return [...this.#pauses.values()];
  }

  /** @throws OwlError with the operator's reason. */
  check(client: string): void {
    if (this.#pauses.size === 0) return;
    const pause = this.#pauses.get(EVERYBODY) ?? this.#pauses.get(client);
    if (pause === undefined) return;
    const { since, reason } = pause;
    const whose = pause.client === EVERYBODY ? "all calls" : "your calls";
    throw new OwlError("paused", `an operator has paused ${whose}${reason === "" ? "" : `: ${reason}`}`, {
      facts: { rule: "paused", since, reason },
    });
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Holds at once, and is on disk when it resolves. */
  async pause(pause: Pause): Promise<void> {
    await this.#change((pauses) => pauses.set(pause.client, pause));
  }

  /** Says whether it was paused. */
  async resume(client: string): Promise<boolean> {
    const wasPaused = this.#pauses.has(client);
    if (wasPaused) await this.#change((pauses) => pauses.delete(client));
    return wasPaused;
  }

  watch(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#listeners.clear();
  }

  /** Node's own watch of a file takes what it finds first for what was known before. */
  #look(): void {
    try {
      const version = versionOf(this.#path);
      if (version === this.#version) return;
      this.#version = version;
      this.#set(readPauses(this.#path));
    } catch (error) {
      this.#logger.error("the paused clients cannot be read, those that were stay so", { error });
    }
  }

  async #change(apply: (pauses: Map<string, Pause>) => unknown): Promise<void> {
    const next = new Map(this.#pauses);
    apply(next);
    this.#set(next);
    const written = this.#turn.then(() => this.#write());
    this.#turn = written.catch(() => undefined);
    await written;
  }

  #set(pauses: ReadonlyMap<string, Pause>): void {
    this.#pauses = pauses;
    for (const listener of this.#listeners) listener();
  }

  async #write(): Promise<void> {
    const draft = `${this.#path}.${process.pid}.new`;
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    await writeFile(draft, `${JSON.stringify({ paused: this.list() }, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, this.#path);
  }
}

/** Another text is another file, since each is put in place whole. */
function versionOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

function readPauses(path: string): ReadonlyMap<string, Pause> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return new Map();
    throw error;
  }
  const parsed = fileSchema.safeParse(parseJson(text));
  if (!parsed.success)
    throw new Error(`${path} does not say who is paused: correct it, or remove it to resume everybody`);
  return new Map(parsed.data.paused.map((pause) => [pause.client, pause]));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema says what is wrong.
    return undefined;
  }
}
