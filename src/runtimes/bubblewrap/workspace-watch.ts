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

export function createWorkspaceWatch(intervalMs: number = INTERVAL_MS): WorkspaceWatch {
  const watched = new Map<string, Watched>();
  let timer: NodeJS.Timeout | undefined;

  const scan = async (): Promise<void> => {
    const folders = [...watched.keys()];
    // `du` walks by descriptors and follows no link: what is inside cannot lead it elsewhere.
    const { stdout } = await runTool({
      command: "du",
      args: ["-s", "-x", "-B1", "-0", "--", ...folders],
      timeoutMs: SCAN_TIMEOUT_MS,
    });
    for (const entry of stdout.split("\0")) {
      const [size = "", folder = ""] = entry.split("\t");
      const found = watched.get(folder);
      if (found === undefined || Number(size) <= found.maxBytes) continue;
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
    },
  };
}
