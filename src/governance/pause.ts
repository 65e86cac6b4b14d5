import * as z from "zod";

/** The calls of a client, or of everybody, are refused until somebody resumes them. */
export interface Pause {
  /** A principal, or `*`. */
  readonly client: string;
  readonly by: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly since: string;
  /** Calls that ran when it began are ended, on every server. */
  readonly cancel?: boolean | undefined;
}

/** Where pauses are kept. Several servers may have one in common, and write without asking each other. */
export interface PauseStore {
  /** After this long without an answer it must be asked before a call; nobody waits for what is always at hand. */
  readonly maxAgeMs: number;
  /** @throws Error when one is there and does not say who is paused. */
  read(): Promise<ReadonlyMap<string, Pause>>;
  write(pause: Pause): Promise<void>;
  remove(client: string): Promise<void>;
  close(): Promise<void>;
}

const pauseSchema = z.strictObject({
  client: z.string(),
  by: z.string(),
  reason: z.string(),
  since: z.string(),
  cancel: z.boolean().optional(),
});

/** Nothing where the text does not say who is paused. */
export function parsePause(text: string): Pause | undefined {
  try {
    return pauseSchema.safeParse(JSON.parse(text)).data;
  } catch {
    // Whoever asked says what is wrong, and where.
    return undefined;
  }
}
