import { createHash, randomBytes } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { identifyProcess, isAlive, processIdentitySchema } from "../../processes/identity.ts";
import { draftName } from "../replace-file.ts";

/** Labels by which containers and volumes of ours are known; nothing without them is ever touched. */
export const LABELS = {
  /** Which data folder: servers of others may use the same engine. */
  data: "owlclaw.data",
  server: "owlclaw.server",
  /** The process that made it. */
  owner: "owlclaw.owner",
  cell: "owlclaw.cell",
  /** `cell`, `workspace`, `guest` or `image`. */
  kind: "owlclaw.kind",
} as const;

export interface Ownership {
  readonly dataId: string;
  readonly serverId: string;
  /** `guest` is what fills a volume for all, and `image` what asks an image: neither is for one sandbox. */
  labels(kind: "cell" | "workspace" | "guest" | "image", cellId?: string): Record<string, string>;
  /** The same for the same folder, in every server of this data folder. */
  volumeName(folder: string): string;
}

export async function openOwnership(stateFolder: string, serverId: string): Promise<Ownership> {
  const dataId = await readDataId(join(stateFolder, "id"));
  const owner = JSON.stringify(identifyProcess(process.pid) ?? { pid: process.pid });
  return {
    dataId,
    serverId,
    labels: (kind, cellId) => ({
      [LABELS.data]: dataId,
      [LABELS.server]: serverId,
      [LABELS.owner]: owner,
      ...(cellId !== undefined && { [LABELS.cell]: cellId }),
      [LABELS.kind]: kind,
    }),
    volumeName: (folder) => `owlclaw-${dataId}-${createHash("sha256").update(folder).digest("hex").slice(0, 20)}`,
  };
}

/** Whether the server that made it is gone for good. What cannot be read is not ours to judge. */
export function isOrphan(labels: Readonly<Record<string, string>>): boolean {
  try {
    const label: unknown = JSON.parse(labels[LABELS.owner] ?? "");
    const identity = processIdentitySchema.safeParse(label);
    if (identity.success) return !isAlive(identity.data);
    const { pid } = processIdentitySchema.pick({ pid: true }).parse(label);
    return !isRunning(pid);
  } catch {
    return false;
  }
}

/** On machines without /proc. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function readDataId(file: string): Promise<string> {
  const draft = draftName(file);
  await writeFile(draft, randomBytes(8).toString("hex"), { mode: 0o600 });
  try {
    // Of several servers that start at once the first one decides.
    await link(draft, file);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return (await readFile(file, "utf8")).trim();
}
