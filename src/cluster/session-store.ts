import { z } from "zod";
import type { RedisConnection } from "../platform/redis-connection.ts";
import { SERVER_KEY_PREFIX } from "./server-directory.ts";
import { SessionJournal } from "./session-journal.ts";
import { eventPlace, SessionLog, type SessionSource, STATE_PLACE, streamPlace } from "./session-log.ts";
import { LOCATE_SCRIPT, TAKE_SCRIPT } from "./session-scripts.ts";
import { SessionSeal, storedNameOf } from "./session-seal.ts";
import { readFacts, readState, type SessionState, type StoredStream, type TakenSession } from "./session-state.ts";

export interface SessionStoreOptions {
  readonly connection: RedisConnection;
  readonly clusterKey: string;
  readonly serverId: string;
  /** How long a session is kept that nobody speaks of any more. */
  readonly lifeMs: number;
  /** How long a stream is kept that has ended. */
  readonly endedLifeMs: number;
}

/** Sessions in Redis, so that they survive the server that has them. */
export class SessionStore {
  readonly #options: SessionStoreOptions;
  readonly #journal: SessionJournal;

  constructor(options: SessionStoreOptions) {
    this.#options = options;
    this.#journal = new SessionJournal(options);
  }

  /** What is kept of a session of this server. */
  log(sessionId: string, source: SessionSource): SessionLog {
    const { lifeMs, endedLifeMs } = this.#options;
    const seal = this.#sealOf(sessionId);
    return new SessionLog({ key: keyOf(sessionId), seal, journal: this.#journal, source, lifeMs, endedLifeMs });
  }

  /** On which server the session is, and where that is, if it lives. `named` is meant where nothing is kept. */
  async locate(sessionId: string, named: string): Promise<{ readonly home: string; readonly url: string | undefined }> {
    const input = { key: keyOf(sessionId), servers: SERVER_KEY_PREFIX, named };
    const answer = await this.#options.connection.run(LOCATE_SCRIPT, JSON.stringify(input));
    const [home, url] = Array.isArray(answer) ? answer.map(String) : [];
    return { home: home ?? named, url: url === "" ? undefined : url };
  }

  async read(sessionId: string): Promise<SessionState | undefined> {
    const text = await this.#options.connection.send(["HGET", keyOf(sessionId), "state"]);
    if (typeof text !== "string") return undefined;
    return whole(() => readState(this.#sealOf(sessionId).open(STATE_PLACE, text)));
  }

  /** Nothing when it is not that server's any more, or that server lives. */
  async take(sessionId: string, from: string): Promise<TakenSession | undefined> {
    const { connection, serverId } = this.#options;
    const input = { key: keyOf(sessionId), servers: SERVER_KEY_PREFIX, me: serverId, from };
    const answer = await connection.run(TAKE_SCRIPT, JSON.stringify(input));
    if (answer === null) return undefined;
    const seal = this.#sealOf(sessionId);
    return whole(() => {
      const [state, times, streams] = takenSchema.parse(answer);
      return {
        state: readState(seal.open(STATE_PLACE, state)),
        times,
        streams: streams.map((stream) => readStream(seal, stream)),
      };
    });
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  #sealOf(sessionId: string): SessionSeal {
    return new SessionSeal(this.#options.clusterKey, sessionId);
  }
}

function keyOf(sessionId: string): string {
  return `owlclaw:session:${storedNameOf(sessionId)}`;
}

const streamSchema = z.tuple([z.string(), z.enum(["s", "c"]), z.string(), z.array(z.string())]);
const takenSchema = z.tuple([z.string(), z.number(), z.array(streamSchema)]);

function readStream(seal: SessionSeal, [id, kind, about, items]: z.output<typeof streamSchema>): StoredStream {
  const events = items.map((item) => {
    const [, text = "", sealed = ""] = /^(\d{1,15}):(.*)$/.exec(item) ?? [];
    const sequence = Number(text);
    return { sequence, data: seal.open(eventPlace(id, sequence), sealed) };
  });
  return { id, isEnded: kind === "c", events, ...readFacts(seal.open(streamPlace(id), about)) };
}

/** What was not written by a server of this cluster is as good as nothing. */
function whole<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
