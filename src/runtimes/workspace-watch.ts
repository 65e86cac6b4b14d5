import { stat } from "node:fs/promises";
import { runTool } from "./run-tool.ts";

const INTERVAL_MS = 2000;
const SCAN_TIMEOUT_MS = 60_000;
/** One file for so many bytes, as ext4 has them: a workspace of 2 GiB holds 131,072. */
const BYTES_FOR_EACH_FILE = 16 * 1024;

export interface WatchedWorkspace {
  readonly folder: string;
  readonly maxBytes: number;
  /** The processes of its sandbox, as the host numbers them: files that were removed stay while one of them has them open. */
  readonly processes: () => Promise<readonly number[]>;
}

/** Where no file system limits a workspace, what it holds is measured now and then: late, but not never. */
export interface WorkspaceWatch {
  /** Calls back once when the workspace holds more than it may; returns what ends the watch. */
  watch(workspace: WatchedWorkspace, onExcess: () => void): () => void;
  close(): void;
}

export interface WorkspaceSize {
  readonly bytes: number;
  readonly files: number;
}

export interface WatchOptions {
  readonly intervalMs?: number | undefined;
  /** What each workspace holds, by folder; what cannot be measured is left out. */
  readonly measure?: (
    workspaces: readonly WatchedWorkspace[],
    signal: AbortSignal,
  ) => Promise<ReadonlyMap<string, WorkspaceSize>>;
}

export function createWorkspaceWatch({
  intervalMs = INTERVAL_MS,
  measure = measureWorkspaces,
}: WatchOptions = {}): WorkspaceWatch {
  const watched = new Map<string, { readonly workspace: WatchedWorkspace; readonly onExcess: () => void }>();
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  const scan = async (): Promise<void> => {
    const workspaces = [...watched.values()].map(({ workspace }) => workspace);
    if (workspaces.length === 0) return;
    for (const [folder, { bytes, files }] of await measure(workspaces, closing.signal)) {
      const found = watched.get(folder);
      if (found === undefined) continue;
      const { maxBytes } = found.workspace;
      if (bytes <= maxBytes && files <= maxBytes / BYTES_FOR_EACH_FILE) continue;
      watched.delete(folder);
      found.onExcess();
    }
  };
  const schedule = (): void => {
    timer ??= setTimeout(() => {
      void scan().finally(() => {
        timer = undefined;
        if (watched.size > 0) schedule();
      });
    }, intervalMs).unref();
  };

  return {
    watch: (workspace, onExcess) => {
      watched.set(workspace.folder, { workspace, onExcess });
      schedule();
      return () => watched.delete(workspace.folder);
    },
    close: () => {
      clearTimeout(timer);
      watched.clear();
      closing.abort();
    },
  };
}

async function measureWorkspaces(
  workspaces: readonly WatchedWorkspace[],
  signal: AbortSignal,
): Promise<Map<string, WorkspaceSize>> {
  const folders = workspaces.map(({ folder }) => folder);
  const [bytes, files, removed] = await Promise.all([
    diskUsage(["-B1"], folders, signal),
    diskUsage(["--inodes"], folders, signal),
    Promise.all(workspaces.map(async (workspace) => await removedFiles(workspace, signal))),
  ]);
  return new Map(
    folders.flatMap((folder, index): [string, WorkspaceSize][] => {
      const there = bytes.get(folder);
      const open = removed[index];
      if (there === undefined) return [];
      const held = (files.get(folder) ?? 0) + (open?.files ?? 0);
      return [[folder, { bytes: there + (open?.bytes ?? 0), files: held }]];
    }),
  );
}

/** `du` walks by descriptors and follows no link: what is inside cannot lead it elsewhere. It ends with the server. */
async function diskUsage(
  flags: readonly string[],
  folders: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const [command = "", ...before] = process.getuid?.() === 0 ? WITH_SERVER : READING_EVERYTHING;
  const args = [...before, "du", "-s", "-x", ...flags, "-0", "--", ...folders];
  const { stdout } = await runTool({ command, args, timeoutMs: SCAN_TIMEOUT_MS, signal });
  const entries = stdout.split("\0").flatMap((entry): [string, number][] => {
    const [size = "", folder = ""] = entry.split("\t");
    return folder === "" ? [] : [[folder, Number(size)]];
  });
  return new Map(entries);
}

const WITH_SERVER = ["setpriv", "--pdeathsig", "KILL", "--"];

/** An ordinary user is root over the files of that user alone: a folder without rights hides nothing. */
const READING_EVERYTHING = [
  "bwrap",
  "--die-with-parent",
  "--dev-bind",
  "/",
  "/",
  "--unshare-user",
  "--uid",
  "0",
  "--gid",
  "0",
  "--cap-add",
  "CAP_DAC_READ_SEARCH",
  "--",
];

/** Adds up each removed file once, however often it is open. Arguments: the device of the workspace, then folders of descriptors. */
const SUM_REMOVED = `
device="$1"; shift
find -L "$@" -maxdepth 1 -type f -links 0 -printf '%D %i %b\\n' 2>/dev/null |
  sort -u | awk -v device="$device" '$1 == device { blocks += $3; files += 1 } END { printf "%.0f %d", blocks * 512, files }'`;

/** What only an open descriptor still holds. Not seen: what is only mapped into memory, or on its way through a socket. */
async function removedFiles(
  { folder, processes }: WatchedWorkspace,
  signal: AbortSignal,
): Promise<WorkspaceSize | undefined> {
  try {
    const { dev } = await stat(folder);
    const descriptors = (await processes()).map((pid) => `/proc/${pid}/fd`);
    if (descriptors.length === 0) return undefined;
    const args = ["--pdeathsig", "KILL", "--", "sh", "-c", SUM_REMOVED, "sh", String(dev), ...descriptors];
    const { stdout } = await runTool({ command: "setpriv", args, timeoutMs: SCAN_TIMEOUT_MS, signal });
    const [bytes = 0, files = 0] = stdout.split(" ").map(Number);
    return { bytes, files };
  } catch {
    // The workspace or its sandbox has gone meanwhile.
    return undefined;
  }
}
