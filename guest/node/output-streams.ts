import { closeSync, fstatSync, openSync } from "node:fs";

interface Output {
  readonly fd: number;
  /** Another descriptor of the same pipe; a socket has none. */
  readonly copy: number | undefined;
  readonly inode: number;
}

/** Code that closes its output closes it for its own run only. */
export class OutputStreams {
  readonly #outputs: readonly Output[] = [toOutput(1), toOutput(2)];

  constructor() {
    for (const stream of [process.stdout, process.stderr]) {
      // Node would reopen an ended stream, but the pipe would be closed.
      stream._final = (done) => done();
      // Reporting the error on the failed stream would cause another error.
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
    // The descriptor is closed.
    return undefined;
  }
}

/** Opening returns the lowest free descriptor. */
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
