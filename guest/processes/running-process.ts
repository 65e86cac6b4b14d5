import type { ProcessInfo } from "../../contract/guest.ts";
import type { Readable, Writable } from "node:stream";

export interface LaunchOptions {
  /** The absolute path of the program, then its arguments. */
  readonly argv: readonly [program: string, ...args: string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** `channel`: stdin is empty, and descriptors 3 and 4 carry requests and answers. */
  readonly stdin: "empty" | "pipe" | "channel";
  /** It may allocate as much as the guest: Node reserves more memory than it uses. */
  readonly isNode?: boolean;
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** An output stream of a program. It is always read, also when the data is discarded, so that the program never blocks. */
export interface OutputPipe {
  onData(listener: (chunk: Buffer) => void): void;
  /** Reads what the program has written up to now. */
  drain(): void | Promise<void>;
}

/** A program and its descendants. */
export interface RunningProcess {
  readonly pid: number;
  readonly stdout: OutputPipe;
  readonly stderr: OutputPipe;
  /** stdin, or the request side of the channel. */
  readonly input: Writable;
  /** The answer side of the channel. */
  readonly answers: Readable | undefined;
  /** Resolves when the program has exited; its descendants may still run. */
  readonly exited: Promise<ProcessExit>;
  /** Resolves when all of its processes have exited. */
  readonly gone: Promise<void>;
  /** Sends a signal to all of them. */
  signal(name: NodeJS.Signals): void;
  /** Kills all of them. */
  end(): Promise<void>;
  /** Its descendants that still run. */
  descendants(): ProcessInfo[];
  /** Stops following it. Its descendants keep running. */
  release(): void;
}

/** Starts programs. */
export interface Launcher {
  launch(options: LaunchOptions): Promise<RunningProcess>;
  close(): void;
}
