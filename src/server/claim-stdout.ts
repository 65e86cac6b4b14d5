import { Writable } from "node:stream";

/**
 * Keeps stdout for the protocol: whatever else writes there, a handler's `console.log` first of all, lands on stderr.
 * Must run before any code of the user's is loaded.
 */
export function claimStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  const output = new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _encoding, done) => void write(chunk, done),
  });
  process.stdout.write = process.stderr.write.bind(process.stderr);
  // A client that is gone shows here first; its end of stdin follows, and stops the server.
  process.stdout.on("error", () => undefined);
  output.on("error", () => undefined);
  return output;
}
