import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type ProcessIdentity, processIdentitySchema } from "../../../platform/process-identity.ts";
import { replaceFile, sweepDrafts } from "../host-files.ts";

/** What a server records about itself and its instances, so that another server can clean up after a crash. */
const serverRecordSchema = z.object({
  serverId: z.string(),
  owner: processIdentitySchema,
  /** Folders of the cgroup tree. */
  groups: z.array(z.string()),
});

const instanceRecordSchema = z.object({
  id: z.string(),
  serverId: z.string(),
  owner: processIdentitySchema,
  folder: z.string(),
  groups: z.array(z.string()),
  /** The first process inside, by its id on the host. */
  init: processIdentitySchema.optional(),
});
/** Names become file names. The server makes them; they are checked nevertheless. */
const RECORD_NAME = /^[A-Za-z0-9_-]{1,200}$/;

export type ServerRecord = z.infer<typeof serverRecordSchema>;
export type InstanceRecord = z.infer<typeof instanceRecordSchema>;

export interface Records {
  readonly owner: ProcessIdentity;
  writeServer(record: ServerRecord): Promise<void>;
  writeInstance(record: InstanceRecord): Promise<void>;
  removeServer(serverId: string): Promise<void>;
  removeInstance(id: string): Promise<void>;
  /** The records that this server wrote about a folder. */
  removeInstancesOf(folder: string): Promise<void>;
  servers(): Promise<ServerRecord[]>;
  instances(): Promise<InstanceRecord[]>;
  /** Removes incomplete files of dead servers. */
  sweep(): Promise<void>;
}

export async function openRecords(folder: string, owner: ProcessIdentity): Promise<Records> {
  const servers = join(folder, "servers");
  const instances = join(folder, "cells");
  for (const part of [servers, instances]) await mkdir(part, { recursive: true, mode: 0o700 });
  const idsByFolder = new Map<string, Set<string>>();
  const removeInstance = async (id: string): Promise<void> => await rm(fileIn(instances, id), { force: true });
  return {
    owner,
    writeServer: async (record) => await write(fileIn(servers, record.serverId), record),
    writeInstance: async (record) => {
      const ids = idsByFolder.get(record.folder) ?? new Set();
      idsByFolder.set(record.folder, ids.add(record.id));
      await write(fileIn(instances, record.id), record);
    },
    removeServer: async (serverId) => await rm(fileIn(servers, serverId), { force: true }),
    removeInstance,
    removeInstancesOf: async (folder) => {
      const ids = idsByFolder.get(folder) ?? [];
      idsByFolder.delete(folder);
      await Promise.all([...ids].map(removeInstance));
    },
    servers: async () => await readAll(servers, serverRecordSchema),
    instances: async () => await readAll(instances, instanceRecordSchema),
    sweep: async () => {
      const others = ["", "etc", "disks"].map((name) => join(folder, name));
      for (const part of [servers, instances, ...others]) await sweepDrafts(part);
    },
  };
}

function fileIn(folder: string, name: string): string {
  if (!RECORD_NAME.test(name)) throw new RangeError(`not a name for a record: ${JSON.stringify(name)}`);
  return join(folder, `${name}.json`);
}

async function write(file: string, record: unknown): Promise<void> {
  await replaceFile(file, JSON.stringify(record), 0o600);
}

async function readAll<T>(folder: string, schema: z.ZodType<T>): Promise<T[]> {
  const found: T[] = [];
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".json")) continue;
    // Another server may remove its record while this one reads. An unreadable record is ignored.
    const text = await readFile(join(folder, name), "utf8").catch(() => "null");
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) found.push(parsed.data);
  }
  return found;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
