import type { Logger } from "../telemetry/logger.ts";
import type { ClusterDatabase, SessionLocation, TakenRow } from "./cluster-database.ts";
import { SessionWriter } from "./session-writer.ts";
import { eventContext, SessionLog, type SessionSource, STATE_CONTEXT, streamContext } from "./session-log.ts";
import {
  readFacts,
  readState,
  type SessionState,
  type StoredStream,
  type TakenSession,
  SessionSeal,
  storedNameOf,
} from "./session-state.ts";

export interface SessionStoreOptions {
  readonly database: ClusterDatabase;
  readonly clusterKey: string;
  readonly serverId: string;
  readonly logger: Logger;
  /** How long a session is stored after its last change. */
  readonly lifeMs: number;
  /** How long a stream that has ended is stored. */
  readonly endedLifeMs: number;
}

/** MCP sessions in the shared database, sealed with the key of the cluster, so that they outlive the server that owns them. */
export class SessionStore {
  readonly #options: SessionStoreOptions;
  readonly #writer: SessionWriter;

  constructor(options: SessionStoreOptions) {
    this.#options = options;
    this.#writer = new SessionWriter(options);
  }

  /** Stores a session of this server. */
  log(sessionId: string, source: SessionSource): SessionLog {
    const { lifeMs, endedLifeMs } = this.#options;
    const seal = this.#sealOf(sessionId);
    return new SessionLog({ key: storedNameOf(sessionId), seal, writer: this.#writer, source, lifeMs, endedLifeMs });
  }

  /** `named` is the owner where nothing is stored of the session. */
  locate(sessionId: string, named: string, leaseMs: number): Promise<SessionLocation> {
    return this.#options.database.locateSession(storedNameOf(sessionId), named, leaseMs);
  }

  async read(sessionId: string): Promise<SessionState | undefined> {
    const sealed = await this.#options.database.readSession(storedNameOf(sessionId));
    if (sealed === undefined) return undefined;
    return unlessForged(() => readState(this.#sealOf(sessionId).open(STATE_CONTEXT, sealed)));
  }

  /** `undefined` when the session is owned by another server than `from`, or `from` lives. */
  async take(sessionId: string, from: string): Promise<TakenSession | undefined> {
    const { database, serverId } = this.#options;
    const taken = await database.takeSession(storedNameOf(sessionId), from, serverId);
    if (taken === undefined) return undefined;
    const seal = this.#sealOf(sessionId);
    return unlessForged(() => ({
      state: readState(seal.open(STATE_CONTEXT, taken.state)),
      times: taken.taken,
      streams: taken.streams.map((stream) => readStream(seal, stream)),
    }));
  }

  /** After a crash of the database its unlogged tables are empty: the sessions of this server are written again. */
  writeAgain(): void {
    this.#writer.checkAll();
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  #sealOf(sessionId: string): SessionSeal {
    return new SessionSeal(this.#options.clusterKey, sessionId);
  }
}

function readStream(seal: SessionSeal, { id, ended, about, events }: TakenRow["streams"][number]): StoredStream {
  return {
    id,
    isEnded: ended,
    events: events.map(([sequence, sealed]) => ({ sequence, data: seal.open(eventContext(id, sequence), sealed) })),
    ...readFacts(seal.open(streamContext(id), about)),
  };
}

/** A row that no server of this cluster has written counts as none. */
function unlessForged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
