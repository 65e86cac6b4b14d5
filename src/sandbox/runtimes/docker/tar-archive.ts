import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const BLOCK = 512;
const NAME_BYTES = 100;

/** One entry of a tar archive. */
export interface TarEntry {
  /** Relative; a folder's name ends with a slash. */
  readonly name: string;
  readonly mode: number;
  readonly uid?: number;
  readonly content?: Buffer;
}

export function packTar(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([
    ...entries.flatMap((entry) => [header(entry), ...body(entry.content)]),
    Buffer.alloc(2 * BLOCK),
  ]);
}

/** All folders and files below, readable by every user, whatever permissions they have here. */
export async function tarEntriesOf(folder: string, prefix = ""): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  for (const found of (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, found.name);
    const name = `${prefix}${found.name}`;
    if (found.isDirectory()) {
      entries.push({ name: `${name}/`, mode: 0o755 }, ...(await tarEntriesOf(path, `${name}/`)));
    } else if (found.isFile()) {
      entries.push({ name, mode: 0o644, content: await readFile(path) });
    }
  }
  return entries;
}

function header({ name, mode, uid = 0, content }: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK);
  if (Buffer.byteLength(name) > NAME_BYTES) throw new RangeError(`too long for an archive: ${name}`);
  block.write(name, 0);
  block.write(octal(mode, 8), 100);
  writeId(block, uid, 108);
  writeId(block, uid, 116);
  block.write(octal(content?.length ?? 0, 12), 124);
  block.write(octal(0, 12), 136);
  block.write(name.endsWith("/") ? "5" : "0", 156);
  block.write("ustar", 257);
  block.write("00", 263);
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** Seven octal digits hold ids up to two million; larger ids are written in binary, as GNU tar does. */
function writeId(block: Buffer, id: number, offset: number): void {
  if (id < 8 ** 7) {
    block.write(octal(id, 8), offset);
    return;
  }
  block[offset] = 0x80;
  block.writeUInt32BE(id, offset + 4);
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

function body(content: Buffer | undefined): Buffer[] {
  if (content === undefined) return [];
  return [content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
}
