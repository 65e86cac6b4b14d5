import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";

/** The calls of a client, or of everybody, are refused until somebody resumes them. */
export interface Pause {
  /** A principal, or `*`. */
  readonly client: string;
  readonly by: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly since: string;
}

const FILE_END = ".json";
const pauseSchema = z.strictObject({ client: z.string(), by: z.string(), reason: z.string(), since: z.string() });

/** One file for each pause, so that servers that pause at the same moment do not write over each other. */
export class PauseFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Another text means that something has changed: each file is put in place whole, and so is another one. */
  version(): string {
    const stats = this.#paths().map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
    return stats.map((stat) => `${stat?.ino} ${stat?.mtimeNs} ${stat?.size}`).join(", ");
  }

  /** @throws Error when one of them does not say who is paused. */
  read(): ReadonlyMap<string, Pause> {
    return new Map(this.#all().map(({ pause }) => [pause.client, pause]));
  }

  async write(pause: Pause): Promise<void> {
    const path = join(this.#folder, nameFor(pause.client));
    const draft = `${path}.${randomBytes(4).toString("hex")}.new`;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(draft, `${JSON.stringify(pause, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, path);
  }

  /** Whatever the file is called: somebody may have written it by hand. */
  async remove(client: string): Promise<void> {
    for (const { pause, path } of this.#all()) if (pause.client === client) await rm(path, { force: true });
  }

  #all(): readonly { readonly pause: Pause; readonly path: string }[] {
    return this.#paths().flatMap((path) => {
      const text = unlessGone(() => readFileSync(path, "utf8"));
      return text === undefined ? [] : [{ path, pause: parsePause(text, path) }];
    });
  }

  #paths(): readonly string[] {
    const names = unlessGone(() => readdirSync(this.#folder)) ?? [];
    return names.filter((name) => name.endsWith(FILE_END)).map((name) => join(this.#folder, name));
  }
}

/** Readable for whoever has to clean up; the digest keeps names apart that look alike. */
function nameFor(client: string): string {
  const digest = createHash("sha256").update(client).digest("hex").slice(0, 16);
  return `${client.replaceAll(/[^\w-]/g, "_").slice(0, 80)}-${digest}${FILE_END}`;
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function parsePause(text: string, path: string): Pause {
  const parsed = pauseSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${path} does not say who is paused: correct it, or remove it to resume that client`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema says what is wrong.
    return undefined;
  }
}
