import { inflateSync } from "node:zlib";

const SIGNATURE_BYTES = 8;
/** Length, type and checksum. */
const CHUNK_FRAME_BYTES = 12;

/** The colour of a PNG's upper left corner, as in `255,0,0`: whichever filter its first line has, that pixel stands there as it is. */
export function firstPixel(png: Buffer): string | undefined {
  const parts: Buffer[] = [];
  for (let at = SIGNATURE_BYTES; at + CHUNK_FRAME_BYTES <= png.length; at += CHUNK_FRAME_BYTES + png.readUInt32BE(at)) {
    if (png.toString("latin1", at + 4, at + 8) === "IDAT")
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  if (parts.length === 0) return undefined;
  const [, red, green, blue] = inflateSync(Buffer.concat(parts));
  return [red, green, blue].join(",");
}
