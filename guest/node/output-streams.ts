import { closeSync, fstatSync, openSync } from "node:fs";

interface Output {
  readonly fd: number;
  /** Another way into the same pipe; a socket has none. */
  readonly copy: number | undefined;
  readonly inode: number;
}

/** Code that closes its output closes it for itself, not for the runs that follow. */
export class OutputStreams {
  readonly #outputs: readonly Output[] = [toOutput(1), toOutput(2)];

  constructor() {
    for (const stream of [process.stdout, process.stderr]) {
      // Node opens a stream that was ended again, but would have shut the pipe.
      stream._final = (done) => done();
      // Reported on a stream that fails, a failure would come back for ever.
      stream.on("error", () => {});
    }
  }

  restore(): void {
    for (const output of this.#outputs) if (inodeOf(output.fd) !== output.inode) reopen(output);
  }
}

function toOutput(fd: number): Output {
  return { fd, copy: tryOpen(`/proc/self/fd/${fd}`), inode: fstatSync(fd).ino };
}

function tryOpen(path: string): number | undefined {
  try {
    return openSync(path, "w");
  } catch {
    return undefined;
  }
}

function inodeOf(fd: number): number | undefined {
  try {
    return fstatSync(fd).ino;
  } catch {
    // It is closed.
    return undefined;
  }
}

/** What is opened gets the lowest number that is free. */
function reopen({ fd, copy }: Output): void {
  if (copy === undefined) return;
  if (inodeOf(fd) !== undefined) closeSync(fd);
  const below: number[] = [];
  let opened = openSync(`/proc/self/fd/${copy}`, "w");
  while (opened < fd) {
    below.push(opened);
    opened = openSync(`/proc/self/fd/${copy}`, "w");
  }
  for (const other of below) closeSync(other);
}
