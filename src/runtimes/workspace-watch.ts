import { runTool } from "./run-tool.ts";

const INTERVAL_MS = 2000;
const SCAN_TIMEOUT_MS = 60_000;

/** Where no disk limit can be set, the size of workspaces is looked at now and then: late, but not never. */
export interface WorkspaceWatch {
  /** Calls back once when the folder holds more than it may; returns what ends the watch. */
  watch(folder: string, maxBytes: number, onExcess: () => void): () => void;
  close(): void;
}

interface Watched {
  readonly maxBytes: number;
  readonly onExcess: () => void;
}

export interface WatchOptions {
  readonly intervalMs?: number | undefined;
  /** The size of each folder in bytes; what cannot be measured is left out. */
  readonly measure?: (folders: readonly string[], signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
}

export function createWorkspaceWatch({
  intervalMs = INTERVAL_MS,
  measure = measureFolders,
}: WatchOptions = {}): WorkspaceWatch {
  const watched = new Map<string, Watched>();
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  const scan = async (): Promise<void> => {
    if (watched.size === 0) return;
    for (const [folder, sizeBytes] of await measure([...watched.keys()], closing.signal)) {
      const found = watched.get(folder);
      if (found === undefined || sizeBytes <= found.maxBytes) continue;
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
    watch: (folder, maxBytes, onExcess) => {
      watched.set(folder, { maxBytes, onExcess });
      schedule();
      return () => watched.delete(folder);
    },
    close: () => {
      clearTimeout(timer);
      watched.clear();
      closing.abort();
    },
  };
}

/** `du` walks by descriptors and follows no link: what is inside cannot lead it elsewhere. It ends with the server. */
async function measureFolders(folders: readonly string[], signal: AbortSignal): Promise<Map<string, number>> {
  const { stdout } = await runTool({
    command: "setpriv",
    args: ["--pdeathsig", "KILL", "--", "du", "-s", "-x", "-B1", "-0", "--", ...folders],
    timeoutMs: SCAN_TIMEOUT_MS,
    signal,
  });
  const entries = stdout.split("\0").flatMap((entry): [string, number][] => {
    const [size = "", folder = ""] = entry.split("\t");
    return folder === "" ? [] : [[folder, Number(size)]];
  });
  return new Map(entries);
}
