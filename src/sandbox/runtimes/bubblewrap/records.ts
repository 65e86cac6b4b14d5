import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type ProcessIdentity, processIdentitySchema } from "../../../platform/process-identity.ts";
import { replaceFile, sweepDrafts } from "../replace-file.ts";

/** What a server wrote down about itself or one of its cells, so that another can clear up after it. */
const serverRecordSchema = z.object({
  serverId: z.string(),
  owner: processIdentitySchema,
  /** Folders of the cgroup tree. */
  groups: z.array(z.string()),
});

const cellRecordSchema = z.object({
  id: z.string(),
  serverId: z.string(),
  owner: processIdentitySchema,
  folder: z.string(),
  groups: z.array(z.string()),
  /** The first process inside, as the host sees it. */
  init: processIdentitySchema.optional(),
});

export type ServerRecord = z.infer<typeof serverRecordSchema>;
export type CellRecord = z.infer<typeof cellRecordSchema>;

/** Names become file names: they were made by us, and are checked all the same. */
const RECORD_NAME = /^[A-Za-z0-9_-]{1,200}$/;

export interface Records {
  readonly owner: ProcessIdentity;
  writeServer(record: ServerRecord): Promise<void>;
  writeCell(record: CellRecord): Promise<void>;
  removeServer(serverId: string): Promise<void>;
  removeCell(id: string): Promise<void>;
  /** Those that this server wrote about a folder. */
  removeCellsOf(folder: string): Promise<void>;
  servers(): Promise<ServerRecord[]>;
  cells(): Promise<CellRecord[]>;
  /** Removes what dead servers had begun to write. */
  sweep(): Promise<void>;
}

export async function openRecords(folder: string, owner: ProcessIdentity): Promise<Records> {
  const servers = join(folder, "servers");
  const cells = join(folder, "cells");
  for (const part of [servers, cells]) await mkdir(part, { recursive: true, mode: 0o700 });
  const idsByFolder = new Map<string, Set<string>>();
  const removeCell = async (id: string): Promise<void> => await rm(fileIn(cells, id), { force: true });
  return {
    owner,
    writeServer: async (record) => await write(fileIn(servers, record.serverId), record),
    writeCell: async (record) => {
      const ids = idsByFolder.get(record.folder) ?? new Set();
      idsByFolder.set(record.folder, ids.add(record.id));
      await write(fileIn(cells, record.id), record);
    },
    removeServer: async (serverId) => await rm(fileIn(servers, serverId), { force: true }),
    removeCell,
    removeCellsOf: async (folder) => {
      const ids = idsByFolder.get(folder) ?? [];
      idsByFolder.delete(folder);
      await Promise.all([...ids].map(removeCell));
    },
    servers: async () => await readAll(servers, serverRecordSchema),
    cells: async () => await readAll(cells, cellRecordSchema),
    sweep: async () => {
      const others = ["", "etc", "disks"].map((name) => join(folder, name));
      for (const part of [servers, cells, ...others]) await sweepDrafts(part);
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
    // Another server may remove its record while this one reads; what cannot be read is not ours to act on.
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
