import { setMaxListeners } from "node:events";
import { stat } from "node:fs/promises";
import { runTool } from "./run-tool.ts";

const INTERVAL_MS = 2000;
const SCAN_TIMEOUT_MS = 15_000;
/** A workspace whose folders are moved all the time cannot be measured. An honest program does not do that for this many measurements. */
const MAX_UNMEASURED = 4;
/** One file for this many bytes, as on ext4: a workspace of 2 GiB may have 131,072 files. */
const BYTES_FOR_EACH_FILE = 16 * 1024;
const WITH_SERVER = ["setpriv", "--pdeathsig", "KILL", "--"];
/** Sums up removed files that are still open, each once. Arguments: the device of the workspace, then folders of descriptors. */
const SUM_REMOVED = `
device="$1"; shift
find -L "$@" -maxdepth 1 -type f -links 0 -printf '%D %i %b\\n' 2>/dev/null |
  sort -u | awk -v device="$device" '$1 == device { blocks += $3; files += 1 } END { printf "%.0f %d", blocks * 512, files }'`;

export interface WatchedWorkspace {
  readonly folder: string;
  readonly maxBytes: number;
  /** The processes of its sandbox, by their ids on the host. A removed file takes space while one of them has it open. */
  readonly processes: () => Promise<readonly number[]>;
}

/** Measures workspaces regularly where no file system limits their size. */
export interface WorkspaceWatch {
  /** Calls `onExcess` once when the workspace is too large, or repeatedly cannot be measured. Returns a function that ends the watch. */
  watch(workspace: WatchedWorkspace, onExcess: () => void): () => void;
  close(): void;
}

export interface WorkspaceSize {
  readonly bytes: number;
  readonly files: number;
}

interface WatchOptions {
  readonly intervalMs?: number | undefined;
  /** The size of each workspace, by folder, without those that cannot be measured. */
  readonly measure?: (
    workspaces: readonly WatchedWorkspace[],
    signal: AbortSignal,
  ) => Promise<ReadonlyMap<string, WorkspaceSize>>;
}

interface Watched {
  readonly workspace: WatchedWorkspace;
  readonly onExcess: () => void;
  /** Failed measurements in a row. */
  unmeasured: number;
}

export function createWorkspaceWatch({
  intervalMs = INTERVAL_MS,
  measure = measureWorkspaces,
}: WatchOptions = {}): WorkspaceWatch {
  const watched = new Map<string, Watched>();
  const closing = new AbortController();
  // Each tool that measures a workspace listens to this signal.
  setMaxListeners(0, closing.signal);
  let timer: NodeJS.Timeout | undefined;

  const scan = async (): Promise<void> => {
    const workspaces = [...watched.values()].map(({ workspace }) => workspace);
    if (workspaces.length === 0) return;
    const sizes = await measure(workspaces, closing.signal);
    for (const workspace of workspaces) {
      const found = watched.get(workspace.folder);
      if (found?.workspace !== workspace || !isExcess(found, sizes.get(workspace.folder))) continue;
      watched.delete(workspace.folder);
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
      watched.set(workspace.folder, { workspace, onExcess, unmeasured: 0 });
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

function isExcess(watched: Watched, size: WorkspaceSize | undefined): boolean {
  watched.unmeasured = size === undefined ? watched.unmeasured + 1 : 0;
  if (size === undefined) return watched.unmeasured >= MAX_UNMEASURED;
  const { maxBytes } = watched.workspace;
  return size.bytes > maxBytes || size.files > maxBytes / BYTES_FOR_EACH_FILE;
}

/** Each by its own tools: one sandbox cannot prevent the measurement of another workspace. */
async function measureWorkspaces(
  workspaces: readonly WatchedWorkspace[],
  signal: AbortSignal,
): Promise<Map<string, WorkspaceSize>> {
  const sizes = new Map<string, WorkspaceSize>();
  const measure = async (workspace: WatchedWorkspace): Promise<void> => {
    const [bytes, files, removed] = await Promise.all([
      diskUsage(["-B1"], workspace.folder, signal),
      diskUsage(["--inodes"], workspace.folder, signal),
      removedFiles(workspace, signal),
    ]);
    if (bytes === undefined || files === undefined) return;
    sizes.set(workspace.folder, { bytes: bytes + (removed?.bytes ?? 0), files: files + (removed?.files ?? 0) });
  };
  await Promise.all(workspaces.map(measure));
  return sizes;
}

/**
 * `du` walks by descriptors and follows no links, so it stays in the workspace. It is killed with the server. `undefined` when
 * it fails, as in a folder that is moved meanwhile.
 */
async function diskUsage(flags: readonly string[], folder: string, signal: AbortSignal): Promise<number | undefined> {
  const [command = "", ...before] = process.getuid?.() === 0 ? WITH_SERVER : READING_EVERYTHING;
  const args = [...before, "du", "-s", "-x", ...flags, "--", folder];
  const { stdout } = await runTool({ command, args, timeoutMs: SCAN_TIMEOUT_MS, signal });
  const size = /^\d+/.exec(stdout)?.[0];
  return size === undefined ? undefined : Number(size);
}

/** Gives an unprivileged server read access to all of its files, also in folders without permissions. */
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

/** Removed files that a process still has open. Not found: files that are only mapped into memory or in flight in a socket. */
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
    // The workspace or its sandbox is gone.
    return undefined;
  }
}
