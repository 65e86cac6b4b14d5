import { createInterface } from "node:readline/promises";

/** The output of a command. Results go to stdout, messages to stderr. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly outIsTty: boolean;
  readonly errIsTty: boolean;
  /** Whether to use colours: the terminal supports them, and `NO_COLOR` is not set. */
  readonly outColor: boolean;
  readonly errColor: boolean;
  /** Columns of the terminal; infinite when stdout is not a terminal. */
  readonly width: number;
}

export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  return {
    out: (text) => void stdout.write(stdout.isTTY ? withoutHiddenControls(text) : text),
    err: (text) => void stderr.write(stderr.isTTY ? withoutHiddenControls(text) : text),
    outIsTty: stdout.isTTY,
    errIsTty: stderr.isTTY,
    // hasColors() reads NO_COLOR, FORCE_COLOR and TERM.
    outColor: stdout.isTTY && stdout.hasColors(),
    errColor: stderr.isTTY && stderr.hasColors(),
    width: stdout.isTTY ? columnsOf(stdout) : Number.POSITIVE_INFINITY,
  };
}

/** Replaces control characters that JSON does not escape. The colours of this program do not use them. */
function withoutHiddenControls(text: string): string {
  return text.replace(/[\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** A terminal with an unknown size reports 0. */
function columnsOf({ columns }: NodeJS.WriteStream): number {
  return columns > 0 ? columns : 80;
}

/**
 * A closed stdout (`owlclaw … | head`) is a normal end of a command that prints. Log lines for a closed stderr are
 * dropped.
 */
export function surviveClosedPipes(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  process.stderr.on("error", () => {});
}

/** Exits when stdout and stderr are flushed. Timers and sockets that a handler left open do not delay the exit. */
export async function exitFlushed(code: number): Promise<void> {
  process.exitCode = code;
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => stream.write("", () => resolve()))),
  );
  process.exit(code);
}

/** Asks on the terminal. Any answer other than yes means no. */
export async function askYesOrNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
