import type { ProcessInfo } from "../../contract/guest.ts";
import type { Readable, Writable } from "node:stream";

export interface LaunchOptions {
  /** The program's whole path first. */
  readonly argv: readonly [program: string, ...args: string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** `channel`: stdin is empty, and descriptors 3 and 4 carry requests and answers. */
  readonly stdin: "empty" | "pipe" | "channel";
  /** It may allocate as much as the guest: Node needs room for what it only reserves. */
  readonly isNode?: boolean;
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** One of a program's output streams. It is read as fast as it comes: what is not wanted is thrown away, never left to block. */
export interface OutputPipe {
  onData(listener: (chunk: Buffer) => void): void;
  /** Takes what the program has written up to now. */
  drain(): void | Promise<void>;
}

/** A program and everything it starts. */
export interface RunningProcess {
  readonly pid: number;
  readonly stdout: OutputPipe;
  readonly stderr: OutputPipe;
  /** stdin, or the requests' side of the channel. */
  readonly input: Writable;
  /** The answers' side of the channel. */
  readonly answers: Readable | undefined;
  /** Resolves when the program itself has ended; what it started may live on. */
  readonly exited: Promise<ProcessExit>;
  /** Resolves when nothing of it is left. */
  readonly gone: Promise<void>;
  /** To all of them. */
  signal(name: NodeJS.Signals): void;
  /** Ends all of them, for good. */
  end(): Promise<void>;
  /** What it started and what still runs. */
  descendants(): ProcessInfo[];
  /** The caller has all it wants of it. What it left running lives on. */
  release(): void;
}

/** Starts programs. */
export interface Launcher {
  launch(options: LaunchOptions): Promise<RunningProcess>;
  close(): void;
}
