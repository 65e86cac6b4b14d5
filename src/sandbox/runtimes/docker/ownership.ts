import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { identifyProcess, isAlive, processIdentitySchema } from "../../../platform/process-identity.ts";
import { draftName } from "../host-files.ts";

/**
 * Labels by which containers and volumes of ours are known; nothing without them is ever touched. A container has those of its
 * image as well, so that they prove nothing: its name does, which is made with a key of the data folder.
 */
export const LABELS = {
  /** Which data folder: servers of others may use the same engine. */
  data: "owlclaw.data",
  server: "owlclaw.server",
  /** The process that made it. */
  owner: "owlclaw.owner",
  instance: "owlclaw.cell",
  /** `cell`, `workspace`, `guest` or `image`. */
  kind: "owlclaw.kind",
} as const;
const ID_BYTES = 8;
const KEY_BYTES = 32;
const PROOF_CHARS = 32;
const CONTAINER_NAME = /^\/?owlclaw-([0-9a-f]{16})-([0-9a-f]{32})$/;

export interface Ownership {
  readonly dataId: string;
  readonly serverId: string;
  /** `guest` is what fills a volume for all, and `image` what asks an image: neither is for one sandbox. */
  labels(kind: "cell" | "workspace" | "guest" | "image", instanceId?: string): Record<string, string>;
  /** The same for the same folder, in every server of this data folder. It shows inside, and tells nothing. */
  volumeName(folder: string): string;
  /** A new one, for each container. */
  containerName(): string;
  /** Whether a server of this data folder made a container of this name. */
  isContainerName(name: string): boolean;
}

export async function openOwnership(stateFolder: string, serverId: string): Promise<Ownership> {
  const dataId = await readRandom(join(stateFolder, "id"), ID_BYTES);
  const key = await readRandom(join(stateFolder, "key"), KEY_BYTES);
  const proofOf = (kind: "container" | "volume", of: string): string =>
    createHmac("sha256", key).update(`${kind}\0${of}`).digest("hex").slice(0, PROOF_CHARS);
  const owner = JSON.stringify(identifyProcess(process.pid) ?? { pid: process.pid });
  return {
    dataId,
    serverId,
    labels: (kind, instanceId) => ({
      [LABELS.data]: dataId,
      [LABELS.server]: serverId,
      [LABELS.owner]: owner,
      ...(instanceId !== undefined && { [LABELS.instance]: instanceId }),
      [LABELS.kind]: kind,
    }),
    volumeName: (folder) => `owlclaw-${proofOf("volume", folder)}`,
    containerName: () => {
      const nonce = randomBytes(ID_BYTES).toString("hex");
      return `owlclaw-${nonce}-${proofOf("container", nonce)}`;
    },
    isContainerName: (name) => {
      const [, nonce = "", proof = ""] = CONTAINER_NAME.exec(name) ?? [];
      return proof !== "" && timingSafeEqual(Buffer.from(proof), Buffer.from(proofOf("container", nonce)));
    },
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

async function readRandom(file: string, bytes: number): Promise<string> {
  const draft = draftName(file);
  await writeFile(draft, randomBytes(bytes).toString("hex"), { mode: 0o600 });
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
