import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Attachment } from "../../operator/api.ts";

/** A page that takes nothing for so long is gone. */
const UNREAD_MS = 60_000;

/** Whatever the chunks come from is let go of when the page has all of them, and when it has gone before. */
export async function sendAttachment({ name, type, chunks }: Attachment, response: ServerResponse): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    // The first piece before the headers, so that what cannot be read is an error and no empty file.
    const first = await iterator.next();
    response.setTimeout(UNREAD_MS, () => response.destroy());
    response.writeHead(200, { "content-type": type, "content-disposition": dispositionOf(name) });
    const all = async function* (): AsyncGenerator<string | Uint8Array> {
      if (first.done === true) return;
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => iterator };
    };
    await pipeline(Readable.from(all()), response);
  } finally {
    // A stream that is destroyed before it has come to the second piece does not reach them.
    await iterator.return?.();
  }
}

function dispositionOf(name: string): string {
  // Half of a pair at the end of a cut would be no text.
  const whole = Buffer.from(name.slice(0, 200)).toString();
  const plain = whole.replaceAll(/[^\w.-]/g, "_").slice(0, 128) || "file";
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded(whole)}`;
}

/** Also what the form of headers keeps for itself. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}
