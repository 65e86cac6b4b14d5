import { createInterface } from "node:readline/promises";

/** Where a command writes. Results go to stdout, everything said to a person to stderr. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly outIsTty: boolean;
  readonly errIsTty: boolean;
  /** Colours are wanted: a terminal that has them, and `NO_COLOR` is not set. */
  readonly outColor: boolean;
  readonly errColor: boolean;
  /** Columns of the terminal; unlimited when the output goes elsewhere. */
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

/** JSON does not escape these. Colours of our own need none of them. */
function withoutHiddenControls(text: string): string {
  return text.replace(/[\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** A terminal that does not know its size says 0. */
function columnsOf({ columns }: NodeJS.WriteStream): number {
  return columns > 0 ? columns : 80;
}

/**
 * A reader that goes away (`owlclaw … | head`) is a normal end for a command that prints.
 * Log lines that nobody reads any more are dropped.
 */
export function surviveClosedPipes(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  process.stderr.on("error", () => {});
}

/** Ends the process when everything written has left it, whatever timers or sockets a handler left behind. */
export async function exitFlushed(code: number): Promise<void> {
  process.exitCode = code;
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => stream.write("", () => resolve()))),
  );
  process.exit(code);
}

/** Asks on the terminal. Anything but yes is no. */
export async function askYesOrNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
