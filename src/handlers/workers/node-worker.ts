import { Duplex } from "node:stream";
import { Socket } from "node:net";
import { CallJournal } from "./call-journal.ts";
import { makeImporter } from "./import-file.ts";
import { KeptSources } from "./kept-sources.ts";
import { JsonLines } from "./json-lines.ts";
import { WorkerHost } from "./worker-host.ts";
import type { FromWorker, ToWorker } from "./worker-protocol.ts";

const MAX_LINE_CHARS = 256 * 1024 * 1024;
const PROTOCOL_FD = 3;
const JOURNAL_FD = 4;

/** The program of a Node worker. Arguments: `fd` or `stdio` for where the protocol is, the compiler's cache folder, and what "owlclaw" means. */
const [, , where = "fd", cacheFolder, publicEntry] = process.argv;
const isPiped = where === "stdio";
const stream = isPiped ? overStdio() : new Socket({ fd: PROTOCOL_FD, readable: true, writable: true });

const lines: JsonLines = new JsonLines({
  stream,
  maxLineChars: MAX_LINE_CHARS,
  onMessage: (message) => {
    if (isMessage(message)) host.receive(message);
  },
  // The server is gone, or has no use for this worker any more.
  onEnd: () => process.exit(0),
});
const send = (message: FromWorker): void => lines.send(message);
const kept = new KeptSources();
const host = new WorkerHost({
  importFile: makeImporter({ cacheFolder: cacheFolder === "" ? undefined : cacheFolder, entry: publicEntry, kept }),
  keep: (texts) => kept.add(texts),
  send,
  journal: isPiped ? undefined : CallJournal.inherited(JOURNAL_FD),
});

process.on("unhandledRejection", (reason) => {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
  send({ t: "notice", level: "error", message: "a handler left a promise behind that failed", text });
});
send({ t: "hello", version: process.version });

/** What handlers print must not stand between messages: it goes to stderr. */
function overStdio(): Duplex {
  const write = process.stdout.write.bind(process.stdout);
  const output = process.stderr;
  process.stdout.write = output.write.bind(output);
  return new (class extends Duplex {
    override _read(): void {}
    override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
      write(chunk, () => done());
    }
    override _construct(done: () => void): void {
      process.stdin.on("data", (chunk: Buffer) => this.push(chunk));
      process.stdin.once("end", () => this.push(null));
      done();
    }
  })();
}

function isMessage(value: unknown): value is ToWorker {
  return typeof value === "object" && value !== null && "t" in value;
}
