import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** The parsed contents; undefined when the file is absent or damaged. */
export async function readCacheFile(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8").catch(() => "");
  // The first line is the digest of the rest: a truncated or edited file is not used.
  const end = text.indexOf("\n");
  const body = text.slice(end + 1);
  if (end === -1 || digestOf(body) !== text.slice(0, end)) return undefined;
  const contents: unknown = JSON.parse(body);
  return contents;
}

/** Replaces the file atomically. Write errors are ignored: without a cache the next start is only slower. */
export async function writeCacheFile(path: string, contents: unknown): Promise<void> {
  const body = JSON.stringify(contents);
  const fresh = `${path}.${randomUUID()}`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(fresh, `${digestOf(body)}\n${body}`, { mode: 0o600 });
    await rename(fresh, path);
  } catch {
    await rm(fresh, { force: true }).catch(() => undefined);
  }
}

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
