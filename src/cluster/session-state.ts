import { z } from "zod";

const stateSchema = z.strictObject({
  ownerId: z.string(),
  /** What the client said of itself in the handshake. */
  initialize: z.record(z.string(), z.unknown()),
  logLevel: z.string().optional(),
  /** The resources that it watches. */
  watched: z.array(z.string()),
});

/** What another server needs to go on with a session. */
export type SessionState = z.output<typeof stateSchema>;

const aboutSchema = z.strictObject({
  /** The requests that are answered on it; none: it is for what belongs to no request. */
  requestIds: z.array(z.union([z.string(), z.number()])),
});

export type StreamFacts = z.output<typeof aboutSchema>;

export interface StreamEvent {
  readonly sequence: number;
  readonly data: string;
}

export interface StoredStream extends StreamFacts {
  readonly id: string;
  readonly isEnded: boolean;
  readonly events: readonly StreamEvent[];
}

/** A session that was another server's. */
export interface TakenSession {
  readonly state: SessionState;
  /** How often it was taken over, this time included. */
  readonly times: number;
  readonly streams: readonly StoredStream[];
}

export function readState(text: string): SessionState {
  return stateSchema.parse(JSON.parse(text));
}

export function readFacts(text: string): StreamFacts {
  return aboutSchema.parse(JSON.parse(text));
}
