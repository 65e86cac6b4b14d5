import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import { Database } from "../platform/postgres-database.ts";
import { parsePause, type Pause, type PauseStore } from "./pauses.ts";

/** JSON, since a client's name may contain characters that a TEXT column cannot hold. */
const MIGRATIONS: readonly string[] = ["CREATE TABLE owlclaw_pauses (client TEXT PRIMARY KEY, pause TEXT NOT NULL)"];
const PUT_SQL = "INSERT INTO owlclaw_pauses VALUES ($1, $2) ON CONFLICT (client) DO UPDATE SET pause = EXCLUDED.pause";
const KEEP_SQL = "INSERT INTO owlclaw_pauses VALUES ($1, $2) ON CONFLICT DO NOTHING";

const rowSchema = z.object({ client: z.string(), pause: z.string() });

/**
 * The pauses of all servers that share a database, one row each. When two servers change the same pause, the later one
 * wins.
 */
export class PostgresPauses implements PauseStore {
  readonly maxAgeMs = 1000;
  readonly #database: Database;

  private constructor(database: Database) {
    this.#database = database;
  }

  /** @throws OwlError when the database cannot be used. */
  static async open(url: string): Promise<PostgresPauses> {
    return new PostgresPauses(await Database.open(url, "pauses", MIGRATIONS));
  }

  /** Moves the pauses of the store that was in use before the database. Rows that exist already are not changed. */
  async takeOver(former: PauseStore): Promise<void> {
    for (const pause of (await former.read()).values()) {
      await this.#database.query(KEEP_SQL, toRow(pause));
      await former.remove(pause.client);
    }
  }

  async read(): Promise<ReadonlyMap<string, Pause>> {
    const rows = await this.#database.query("SELECT client, pause FROM owlclaw_pauses");
    return new Map(rows.map(fromRow).map((pause) => [pause.client, pause]));
  }

  async write(pause: Pause): Promise<void> {
    await this.#database.query(PUT_SQL, toRow(pause));
  }

  async remove(client: string): Promise<void> {
    await this.#database.query("DELETE FROM owlclaw_pauses WHERE client = $1", [JSON.stringify(client)]);
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

function toRow(pause: Pause): [client: string, pause: string] {
  return [JSON.stringify(pause.client), JSON.stringify(pause)];
}

function fromRow(row: unknown): Pause {
  const { client, pause: text } = rowSchema.parse(row);
  const pause = parsePause(text);
  if (pause !== undefined && JSON.stringify(pause.client) === client) return pause;
  throw new OwlError("store_unavailable", `the row ${client} of owlclaw_pauses does not say who is paused`, {
    hint: "Correct the row in the database of store.url, or delete it to resume that client.",
  });
}
