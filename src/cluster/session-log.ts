import type { SessionWriter, StoredSession } from "./session-writer.ts";
import type { SessionState, StoredStream, StreamEvent, StreamFacts, SessionSeal } from "./session-state.ts";

/** A session in the memory of the server that owns it. */
export interface SessionSource {
  state(): SessionState;
  streams(): Iterable<StoredStream>;
}

export interface SessionLogOptions {
  readonly key: string;
  readonly seal: SessionSeal;
  readonly writer: SessionWriter;
  readonly source: SessionSource;
  readonly lifeMs: number;
  /** For streams that have ended. */
  readonly endedLifeMs: number;
}

/** Stores what another server needs to go on with a session. */
export class SessionLog implements StoredSession {
  readonly #options: SessionLogOptions;
  #isOver = false;
  #isTaken = false;

  constructor(options: SessionLogOptions) {
    this.#options = options;
    options.writer.add(options.key, this);
  }

  /** Whether another server is known to own the session. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** Resolves when the session is stored. @throws OwlError */
  async begin(): Promise<void> {
    await this.#options.writer.writeNow(this.#state());
  }

  changed(): void {
    if (!this.#isOver) this.#options.writer.write(this.#state());
  }

  /** `about` comes with the first event of a stream; `keep` is how many of its events matter. */
  event(id: string, { event, keep, about }: { event: StreamEvent; keep: number; about?: StreamFacts }): void {
    if (this.#isOver) return;
    const { key, seal, writer, lifeMs } = this.#options;
    const { sequence, data } = event;
    writer.write({
      op: "event",
      key,
      stream: id,
      sequence,
      event: seal.seal(eventContext(id, sequence), data),
      ...(about && { about: seal.seal(streamContext(id), JSON.stringify(about)) }),
      keep,
      lifeMs,
    });
  }

  streamEnded(id: string, about: StreamFacts): void {
    if (this.#isOver) return;
    const { key, seal, writer, endedLifeMs: lifeMs } = this.#options;
    writer.write({ op: "close", key, stream: id, about: seal.seal(streamContext(id), JSON.stringify(about)), lifeMs });
  }

  streamForgotten(id: string): void {
    if (!this.#isOver) this.#options.writer.write({ op: "forget", key: this.#options.key, stream: id });
  }

  /** The session is still alive. */
  keep(): void {
    const { key, writer, lifeMs } = this.#options;
    if (!this.#isOver) writer.write({ op: "keep", key, lifeMs });
  }

  /** The session is over, for all servers. */
  end(): void {
    if (!this.#isOver) this.#options.writer.write({ op: "end", key: this.#options.key });
    this.leave();
  }

  /** This server writes nothing more of it. */
  leave(): void {
    this.#isOver = true;
    this.#options.writer.remove(this.#options.key);
  }

  onTaken(): void {
    this.#isTaken = true;
    this.leave();
  }

  onDropped(): void {
    this.leave();
  }

  writeAgain(): void {
    if (this.#isOver) return;
    const { writer, source } = this.#options;
    writer.write(this.#state());
    for (const { id, isEnded, events, requestIds } of source.streams()) {
      for (const event of events)
        this.event(id, { event, keep: events.length, ...(event === events[0] && { about: { requestIds } }) });
      if (isEnded) this.streamEnded(id, { requestIds });
    }
  }

  #state() {
    const { key, seal, source, lifeMs } = this.#options;
    return { op: "state", key, state: seal.seal(STATE_CONTEXT, JSON.stringify(source.state())), lifeMs } as const;
  }
}

export const STATE_CONTEXT = "state";

export function streamContext(id: string): string {
  return `stream ${id}`;
}

export function eventContext(id: string, sequence: number): string {
  return `event ${id} ${sequence}`;
}
