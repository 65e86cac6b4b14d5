import { createHash } from "node:crypto";
import { OwlError } from "../../errors/owl-error.ts";

/** 32 bytes in base64. */
const SHA_256 = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;

/** What `Content-Digest` (RFC 9530) says of a body, in hexadecimal as `sha256sum` prints it; nothing without the header. */
export function announcedSha256(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const digests = header.toString().split(",");
  const base64 = digests.map((each) => SHA_256.exec(each.trim())?.[1]).findLast((found) => found !== undefined);
  if (base64 !== undefined) return Buffer.from(base64, "base64").toString("hex");
  throw new OwlError("invalid_request", "Content-Digest has no SHA-256 of the body", {
    hint: "write it as Content-Digest: sha-256=:BASE64:, or leave it out",
  });
}

/** The same bytes. Throws at their end when they are others than were announced. */
export async function* bytesOfDigest(chunks: AsyncIterable<Uint8Array>, sha256: string): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
  const found = hash.digest("hex");
  if (found === sha256) return;
  throw new OwlError("invalid_request", `the body is not what Content-Digest says: its SHA-256 is ${found}`, {
    hint: "nothing was written; send the file with its own digest",
  });
}
