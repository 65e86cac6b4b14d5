import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { identifyProcess, isAlive, processIdentitySchema } from "../../../platform/process-identity.ts";
import { draftName, hasCode } from "../host-files.ts";

/**
 * Labels of the server's containers and volumes; objects without them are never removed. A container also has the labels of its
 * image, so labels prove nothing: the container's name does, which is made with a key of the data folder.
 */
export const LABELS = {
  /** Which data folder: servers with other data folders may use the same engine. */
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
  /** `guest`: a container that fills a shared volume. `image`: a container that inspects an image. */
  labels(kind: "cell" | "workspace" | "guest" | "image", instanceId?: string): Record<string, string>;
  /** The same for the same folder, in every server of this data folder. It is visible inside and reveals nothing. */
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

/** Whether the server that made it is dead. Without a readable label: false. */
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
    return hasCode(error, "EPERM");
  }
}

async function readRandom(file: string, bytes: number): Promise<string> {
  const draft = draftName(file);
  await writeFile(draft, randomBytes(bytes).toString("hex"), { mode: 0o600 });
  try {
    // Of several servers that start at the same time, the first one decides.
    await link(draft, file);
  } catch (error) {
    // ENOENT: a concurrent call in this process has linked the draft and removed it.
    if (!hasCode(error, "EEXIST", "ENOENT")) throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return (await readFile(file, "utf8")).trim();
}
