import { z } from "zod";
import { Database } from "../platform/postgres-database.ts";
import { CLUSTER_MIGRATIONS } from "./cluster-tables.ts";

/** One change of a stored session. `key` is its name in the store. */
export type SessionChange = { readonly key: string } & (
  | { readonly op: "state"; readonly state: string; readonly lifeMs: number }
  | {
      readonly op: "event";
      readonly stream: string;
      readonly sequence: number;
      readonly event: string;
      /** With the first event of a stream. */
      readonly about?: string;
      /** How many of the stream's events are kept. */
      readonly keep: number;
      readonly lifeMs: number;
    }
  | { readonly op: "close"; readonly stream: string; readonly about: string; readonly lifeMs: number }
  | { readonly op: "forget"; readonly stream: string }
  | { readonly op: "keep"; readonly lifeMs: number }
  | { readonly op: "end" }
);

/** `taken`: another server owns the session. `missing`: nothing is stored of it. */
export type ChangeOutcome = "ok" | "taken" | "missing";

/** Where a session is: the server that owns it, and its address if that server lives. */
export interface SessionLocation {
  readonly owner: string;
  readonly url: string | undefined;
  /** Nothing is stored of it, and the database has crashed less than a lease ago: its server has yet to write it again. */
  readonly isAwaited: boolean;
}

const PURGE_MS = 60_000;

const FIND_SERVER = "SELECT url FROM owlclaw_servers WHERE id = $1 AND until > clock_timestamp()";
const REMOVE_SERVER = "DELETE FROM owlclaw_servers WHERE id = $1";
const LOCATE_SESSION = `SELECT named.owner, s.url,
    named.stored IS NULL AND NOT EXISTS (SELECT FROM owlclaw_session_epoch WHERE owlclaw_after(-$3::NUMERIC) > since) AS awaited
  FROM (SELECT stored, coalesce(stored, $2::TEXT) AS owner FROM
    (SELECT (SELECT owner FROM owlclaw_sessions WHERE key = $1 AND until > clock_timestamp()) AS stored) found) named
  LEFT JOIN owlclaw_servers s ON s.id = named.owner AND s.until > clock_timestamp()`;
const READ_SESSION = "SELECT state FROM owlclaw_sessions WHERE key = $1 AND until > clock_timestamp()";
const USE_STATE = `INSERT INTO owlclaw_used_states VALUES ($1, owlclaw_after($2))
  ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until WHERE owlclaw_used_states.until <= clock_timestamp()
  RETURNING id`;

const epochRow = z.object({ epoch: z.string() });
const urlRow = z.object({ url: z.string() });
const locationRow = z.object({ owner: z.string(), url: z.string().nullable(), awaited: z.boolean() });
const stateRow = z.object({ state: z.string() });
const outcomesRow = z.object({ outcomes: z.array(z.enum(["ok", "taken", "missing"])) });
const takenRow = z.object({
  taken: z
    .object({
      state: z.string(),
      taken: z.number(),
      streams: z.array(
        z.object({
          id: z.string(),
          ended: z.boolean(),
          about: z.string(),
          events: z.array(z.tuple([z.number(), z.string()])),
        }),
      ),
    })
    .nullable(),
});

export type TakenRow = NonNullable<z.output<typeof takenRow>["taken"]>;

/** The tables in `store.url` through which several servers find each other and go on with each other's sessions. */
export class ClusterDatabase {
  readonly #database: Database;
  readonly #purging: NodeJS.Timeout;

  private constructor(database: Database) {
    this.#database = database;
    this.#purging = setInterval(() => void this.#purge(), PURGE_MS).unref();
  }

  static async open(url: string): Promise<ClusterDatabase> {
    return new ClusterDatabase(await Database.open(url, "servers", CLUSTER_MIGRATIONS));
  }

  /** Returns the epoch of the stored sessions: a new one says that the database has lost them. */
  async putServer(serverId: string, url: string, leaseMs: number): Promise<string> {
    const values = [serverId, url, leaseMs];
    const [row] = await this.#database.query("SELECT owlclaw_put_server($1, $2, $3) AS epoch", values);
    return epochRow.parse(row).epoch;
  }

  /** The address of a server, if it lives. */
  async findServer(serverId: string): Promise<string | undefined> {
    const [row] = await this.#database.query(FIND_SERVER, [serverId]);
    return row === undefined ? undefined : urlRow.parse(row).url;
  }

  async removeServer(serverId: string): Promise<void> {
    await this.#database.query(REMOVE_SERVER, [serverId]);
  }

  /** `named` is the owner where nothing is stored of the session. */
  async locateSession(key: string, named: string, leaseMs: number): Promise<SessionLocation> {
    const [row] = await this.#database.query(LOCATE_SESSION, [key, named, leaseMs]);
    const { owner, url, awaited } = locationRow.parse(row);
    return { owner, url: url ?? undefined, isAwaited: awaited };
  }

  async readSession(key: string): Promise<string | undefined> {
    const [row] = await this.#database.query(READ_SESSION, [key]);
    return row === undefined ? undefined : stateRow.parse(row).state;
  }

  async takeSession(key: string, from: string, me: string): Promise<TakenRow | undefined> {
    const [row] = await this.#database.query("SELECT owlclaw_take_session($1, $2, $3) AS taken", [key, from, me]);
    return takenRow.parse(row).taken ?? undefined;
  }

  /** In order, in one transaction. */
  async writeSessions(me: string, changes: readonly SessionChange[]): Promise<readonly ChangeOutcome[]> {
    const values = [me, JSON.stringify(changes)];
    const [row] = await this.#database.query("SELECT owlclaw_write_sessions($1, $2) AS outcomes", values);
    return outcomesRow.parse(row).outcomes;
  }

  /** `false` when any server has used it before. */
  async useState(id: string, lifeMs: number): Promise<boolean> {
    return (await this.#database.query(USE_STATE, [id, lifeMs])).length > 0;
  }

  close(): Promise<void> {
    clearInterval(this.#purging);
    return this.#database.close();
  }

  async #purge(): Promise<void> {
    // Expired rows count for nothing; the next purge tries again.
    await this.#database.query("SELECT owlclaw_purge_sessions()").catch(() => undefined);
  }
}
