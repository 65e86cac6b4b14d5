import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { identifyProcess } from "../../platform/process-identity.ts";

const DRAFT = /\.draft-(\d+)-(\d+)$/;

/** A name beside the file that says whose draft it is. */
export function draftName(file: string): string {
  return `${file}.draft-${process.pid}-${identifyProcess(process.pid)?.startTicks ?? 0}`;
}

/** Readers see the old text or the new, never a part. */
export async function replaceFile(file: string, data: string | Buffer, mode: number): Promise<void> {
  const draft = draftName(file);
  await writeFile(draft, data, { mode });
  await rename(draft, file);
}

/** Removes the drafts of processes that are gone. */
export async function sweepDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const [, pid, startTicks] = DRAFT.exec(name) ?? [];
    if (pid === undefined || identifyProcess(Number(pid))?.startTicks === startTicks) continue;
    await rm(join(folder, name), { force: true });
  }
}
