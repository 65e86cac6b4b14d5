import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { OwlError } from "../errors/owl-error.ts";

const VERSION = "v2";
const NONCE_BYTES = 16;
const TAG_BYTES = 16;
/** How far the clocks of two servers may be apart, the way between them included. */
export const TOLERANCE_MS = 30_000;
/** Every message has a key of its own, so that the counter may start at the same place. */
const IV = Buffer.alloc(12);

/** What stands in front of a forwarded call, and is checked before any of it is read. */
export interface Envelope {
  readonly to: string;
  readonly timeMs: number;
  readonly nonce: string;
}

/**
 * Seals what servers say to each other with the key that they share: nobody else can write it, read it, send it again or
 * send it to another server, and an answer belongs to its question.
 */
export class ForwardSeal {
  readonly #macKey: Buffer;
  readonly #bodyKey: Buffer;

  constructor(clusterKey: string) {
    this.#macKey = derive(Buffer.from(clusterKey), { salt: "", info: "owlclaw forward envelope v1" });
    this.#bodyKey = derive(Buffer.from(clusterKey), { salt: "", info: "owlclaw forward body v1" });
  }

  newEnvelope(to: string): Envelope {
    return { to, timeMs: Date.now(), nonce: randomBytes(NONCE_BYTES).toString("base64url") };
  }

  write(envelope: Envelope): string {
    return `${textOf(envelope)} ${this.#mac(envelope).toString("base64url")}`;
  }

  /** @throws OwlError when it was not written with this key, for this server, just now. */
  read(text: string | undefined, me: string): Envelope {
    const match = /^v2 ([A-Za-z0-9_-]{12}) (\d{1,15}) ([A-Za-z0-9_-]{22}) ([A-Za-z0-9_-]{43})$/.exec(text ?? "");
    const [, to = "", time = "", nonce = "", mac = ""] = match ?? [];
    const envelope = { to, timeMs: Number(time), nonce };
    const given = Buffer.from(mac, "base64url");
    const expected = this.#mac(envelope);
    if (match === null || given.length !== expected.length || !timingSafeEqual(given, expected))
      throw refused("it is not signed with the key of this cluster");
    if (to !== me) throw refused("it is for another server");
    if (Math.abs(Date.now() - envelope.timeMs) > TOLERANCE_MS)
      throw refused("it is not of this moment: the clocks of the servers must agree");
    return envelope;
  }

  seal(envelope: Envelope, direction: Direction, plain: string): Buffer {
    const cipher = createCipheriv("aes-256-gcm", this.#keyOf(envelope, direction), IV);
    cipher.setAAD(Buffer.from(textOf(envelope)));
    return Buffer.concat([cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws OwlError */
  open(envelope: Envelope, direction: Direction, sealed: Buffer): string {
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.#keyOf(envelope, direction), IV, {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(textOf(envelope)));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      return decipher.update(sealed.subarray(0, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
    } catch {
      throw refused("its content is not sealed with the key of this cluster");
    }
  }

  #mac(envelope: Envelope): Buffer {
    return createHmac("sha256", this.#macKey).update(textOf(envelope)).digest();
  }

  #keyOf({ nonce }: Envelope, direction: Direction): Buffer {
    return derive(this.#bodyKey, { salt: nonce, info: direction });
  }
}

/** An answer comes in pieces, each at its place. */
export type Direction = "call" | `answer ${number}`;

/** The key for states that clients carry between the servers of one cluster. */
export function stateKeyOf(clusterKey: string): Buffer {
  return derive(Buffer.from(clusterKey), { salt: "", info: "owlclaw request state v1" });
}

function derive(key: Buffer, { salt, info }: { readonly salt: string; readonly info: string }): Buffer {
  return Buffer.from(hkdfSync("sha256", key, salt, info, 32));
}

function textOf({ to, timeMs, nonce }: Envelope): string {
  return `${VERSION} ${to} ${timeMs} ${nonce}`;
}

export function refused(reason: string): OwlError {
  return new OwlError("forbidden", `this is for servers of the same cluster, and the request is refused: ${reason}`, {
    facts: { reason: "not_forwarded" },
    hint: "call /mcp; operators: give all servers the same cluster.key and keep their clocks together",
  });
}
