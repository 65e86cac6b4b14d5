import { z } from "zod";
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";

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

const IV_BYTES = 12;
const TAG_BYTES = 16;
const NAME_CHARS = 32;

/** What the store calls a session: its id would be enough to find it again, and is not for whoever reads the store. */
export function storedNameOf(sessionId: string): string {
  return createHash("sha256").update(sessionId).digest("base64url").slice(0, NAME_CHARS);
}

/**
 * Seals what a store keeps of one session. Nobody without the key of the cluster and the id of the session can read it, change
 * it, or put it in another place.
 */
export class SessionSeal {
  readonly #key: Buffer;

  constructor(clusterKey: string, sessionId: string) {
    this.#key = Buffer.from(hkdfSync("sha256", clusterKey, sessionId, "owlclaw stored session v1", 32));
  }

  seal(place: string, text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#key, iv);
    cipher.setAAD(Buffer.from(place));
    return Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64");
  }

  /** @throws when it was not sealed for this place. */
  open(place: string, sealed: string): string {
    const bytes = Buffer.from(sealed, "base64");
    const decipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  }
}
