import { setMaxListeners } from "node:events";
import { stat } from "node:fs/promises";
import { runTool } from "./run-tool.ts";

const INTERVAL_MS = 2000;
const SCAN_TIMEOUT_MS = 15_000;
/** What is moved about all the time cannot be measured. An honest program does not do that at each of so many looks. */
const MAX_UNMEASURED = 4;
/** One file for so many bytes, as ext4 has them: a workspace of 2 GiB holds 131,072. */
const BYTES_FOR_EACH_FILE = 16 * 1024;
const WITH_SERVER = ["setpriv", "--pdeathsig", "KILL", "--"];
/** Adds up each removed file once, however often it is open. Arguments: the device of the workspace, then folders of descriptors. */
const SUM_REMOVED = `
device="$1"; shift
find -L "$@" -maxdepth 1 -type f -links 0 -printf '%D %i %b\\n' 2>/dev/null |
  sort -u | awk -v device="$device" '$1 == device { blocks += $3; files += 1 } END { printf "%.0f %d", blocks * 512, files }'`;

export interface WatchedWorkspace {
  readonly folder: string;
  readonly maxBytes: number;
  /** The processes of its sandbox, as the host numbers them: files that were removed stay while one of them has them open. */
  readonly processes: () => Promise<readonly number[]>;
}

/** Where no file system limits a workspace, what it holds is measured now and then: late, but not never. */
export interface WorkspaceWatch {
  /**
   * Calls back once when the workspace holds more than it may, or cannot be measured time after time; returns what ends
   * the watch.
   */
  watch(workspace: WatchedWorkspace, onExcess: () => void): () => void;
  close(): void;
}

export interface WorkspaceSize {
  readonly bytes: number;
  readonly files: number;
}

interface WatchOptions {
  readonly intervalMs?: number | undefined;
  /** What each workspace holds, by folder; what cannot be measured is left out. */
  readonly measure?: (
    workspaces: readonly WatchedWorkspace[],
    signal: AbortSignal,
  ) => Promise<ReadonlyMap<string, WorkspaceSize>>;
}

interface Watched {
  readonly workspace: WatchedWorkspace;
  readonly onExcess: () => void;
  /** Looks in a row that gave nothing. */
  unmeasured: number;
}

export function createWorkspaceWatch({
  intervalMs = INTERVAL_MS,
  measure = measureWorkspaces,
}: WatchOptions = {}): WorkspaceWatch {
  const watched = new Map<string, Watched>();
  const closing = new AbortController();
  // Each workspace is measured by tools of its own, which all end with the watch.
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

/** Each by itself: what one sandbox does to its folders keeps no other workspace from being measured. */
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
 * `du` walks by descriptors and follows no link: what is inside cannot lead it elsewhere. It ends with the server. Nothing
 * when it gives up, as it does in a folder that is moved while it is there.
 */
async function diskUsage(flags: readonly string[], folder: string, signal: AbortSignal): Promise<number | undefined> {
  const [command = "", ...before] = process.getuid?.() === 0 ? WITH_SERVER : READING_EVERYTHING;
  const args = [...before, "du", "-s", "-x", ...flags, "--", folder];
  const { stdout } = await runTool({ command, args, timeoutMs: SCAN_TIMEOUT_MS, signal });
  const size = /^\d+/.exec(stdout)?.[0];
  return size === undefined ? undefined : Number(size);
}

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
