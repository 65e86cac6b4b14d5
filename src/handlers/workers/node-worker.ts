import { Duplex } from "node:stream";
import { Socket } from "node:net";
import { CallRegisters } from "./call-registers.ts";
import { makeImporter, KeptSources } from "./import-file.ts";
import { JsonLines } from "./json-lines.ts";
import { WorkerHost } from "./worker-host.ts";
import type { FromWorker, ToWorker } from "./worker-protocol.ts";

const MAX_LINE_CHARS = 256 * 1024 * 1024;
const PROTOCOL_FD = 3;
const REGISTERS_FD = 4;
const WRITE_FD = 4;

/**
 * The program of a Node worker. Arguments: `fd` when the protocol is a socket on descriptor 3 and the registers are on 4,
 * `pair` when the protocol is read from 3 and written to 4; the compiler's cache folder; the file that "owlclaw" loads.
 * Node marks inherited descriptors as close-on-exec when it starts, so child processes of handlers do not inherit them.
 */
const [, , where = "fd", cacheFolder, publicEntry] = process.argv;
const isPair = where === "pair";
const stream = isPair ? pairOfDescriptors() : new Socket({ fd: PROTOCOL_FD, readable: true, writable: true });

const lines: JsonLines = new JsonLines({
  stream,
  maxLineChars: MAX_LINE_CHARS,
  onMessage: (message) => {
    if (isMessage(message)) host.receive(message);
  },
  // The server has exited or closed this worker.
  onEnd: () => process.exit(0),
});
const send = (message: FromWorker): void => lines.send(message);
const kept = new KeptSources();
const host = new WorkerHost({
  importFile: makeImporter({ cacheFolder: cacheFolder === "" ? undefined : cacheFolder, entry: publicEntry, kept }),
  keep: (texts) => kept.add(texts),
  send,
  registers: isPair ? undefined : CallRegisters.inherited(REGISTERS_FD),
});

process.on("unhandledRejection", (reason) => {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
  send({ t: "notice", level: "error", message: "a promise of a handler was rejected and not handled", text });
});
send({ t: "hello", version: process.version });

function pairOfDescriptors(): Duplex {
  const readable = new Socket({ fd: PROTOCOL_FD, readable: true, writable: false });
  const writable = new Socket({ fd: WRITE_FD, readable: false, writable: true });
  return Duplex.from({ readable, writable });
}

function isMessage(value: unknown): value is ToWorker {
  return typeof value === "object" && value !== null && "t" in value;
}
