import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parsePause, type Pause, type PauseStore } from "./pauses.ts";

const FILE_END = ".json";

/** One file for each pause, so that servers that pause at the same time do not overwrite each other's pauses. */
export class PauseFiles implements PauseStore {
  readonly maxAgeMs = Infinity;
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async read(): Promise<ReadonlyMap<string, Pause>> {
    return new Map(this.#all().map(({ pause }) => [pause.client, pause]));
  }

  async write(pause: Pause): Promise<void> {
    const path = join(this.#folder, nameFor(pause.client));
    const draft = `${path}.${randomBytes(4).toString("hex")}.new`;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(draft, `${JSON.stringify(pause, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, path);
  }

  /** Finds the pause by content, not by file name: an operator may have written the file by hand. */
  async remove(client: string): Promise<void> {
    for (const { pause, path } of this.#all()) if (pause.client === client) await rm(path, { force: true });
  }

  async close(): Promise<void> {}

  #all(): readonly { readonly pause: Pause; readonly path: string }[] {
    return this.#paths().flatMap((path) => {
      const text = unlessGone(() => readFileSync(path, "utf8"));
      if (text === undefined) return [];
      const pause = parsePause(text);
      if (pause !== undefined) return [{ path, pause }];
      throw new Error(`${path} does not say who is paused: correct it, or remove it to resume that client`);
    });
  }

  #paths(): readonly string[] {
    const names = unlessGone(() => readdirSync(this.#folder)) ?? [];
    return names.filter((name) => name.endsWith(FILE_END)).map((name) => join(this.#folder, name));
  }
}

/** Readable for an operator who cleans up by hand. The digest distinguishes clients whose readable parts are equal. */
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
