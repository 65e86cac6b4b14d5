import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

/** Far more than any source that a person writes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A project may name a FIFO, a device, or a link to one, whose reading would not end. @throws Error for these, and for what is not there. */
export function readRegularFile(path: string): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    if (found.size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
