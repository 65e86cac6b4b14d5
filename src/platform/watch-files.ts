import { lstatSync } from "node:fs";
import { basename, dirname } from "node:path";
import { watch as watchDisk } from "chokidar";
import { isDynamicPattern } from "tinyglobby";
import { IGNORED_FOLDERS, NewFolders } from "./new-folders.ts";

const SETTLE_MS = 50;
/** A file that is written all the time must not delay the report of everything else that changed. */
const LONGEST_WAIT_IN_SETTLES = 40;
/**
 * After an event, the underlying watcher reports nothing about a file for up to 100 ms. A listener reads the file in
 * that time: a change after this read would never be reported.
 */
const SECOND_LOOK_MS = 250;
export interface WatchOptions {
  /** Files, folders or globs, absolute. */
  readonly paths: readonly string[];
  readonly settleMs?: number;
  /** Default: what a link points to is not watched. */
  readonly followLinks?: boolean;
  /** Called when the system refuses to watch; changes may be missed from then on. */
  readonly onError?: (error: Error) => void;
}

export interface FileWatch {
  /** Resolves when no change is missed any more. Scan after it. */
  readonly ready: Promise<void>;
  /** Watches these as well. */
  add(paths: readonly string[]): void;
  close(): Promise<void>;
}

/**
 * Calls back with every path that was made, changed or removed, folders included, once the disk has been quiet for
 * `settleMs`. A glob is watched from its first fixed folder on; of its pattern only the file extensions count, so that
 * a caller may get a file that does not match.
 */
export function watchFiles(options: WatchOptions, onChange: (files: ReadonlySet<string>) => void): FileWatch {
  const { settleMs = SETTLE_MS, followLinks = false, onError } = options;
  const targets = options.paths.map(toTarget);
  const gathered = gather(settleMs, onChange);
  const watcher = watchDisk([...new Set(targets.map(({ root }) => root))], {
    ignoreInitial: true,
    followSymlinks: followLinks,
    ignored: (path) => IGNORED_FOLDERS.has(basename(path)),
  });
  const ready = new Promise<void>((resolve) => {
    watcher.once("ready", resolve);
  });
  const tell = (path: string): void => {
    if (targets.some((target) => isMeant(target, path))) gathered.add(path);
  };
  const newFolders = new NewFolders(watcher, tell);
  watcher.on("all", (event, path) => {
    tell(path);
    newFolders.onTold(path);
    if (event === "addDir") newFolders.add(path);
  });
  watcher.on("error", (thrown) => onError?.(thrown instanceof Error ? thrown : new Error(String(thrown))));
  let closing: Promise<void> | undefined;
  return {
    ready,
    add: (paths) => {
      const fresh = paths.map(toTarget);
      targets.push(...fresh);
      watcher.add(fresh.map(({ root }) => root));
    },
    close: () => {
      gathered.close();
      newFolders.close();
      return (closing ??= watcher.close());
    },
  };
}

interface Target {
  readonly root: string;
  readonly extensions: readonly string[] | undefined;
}

function toTarget(path: string): Target {
  if (!isDynamicPattern(path)) return { root: path, extensions: undefined };
  let root = path;
  while (isDynamicPattern(root)) root = dirname(root);
  return { root, extensions: extensionsOf(path) };
}

/** `.ts` of `*.ts`, `.ts` and `.py` of `*.{ts,py}`; undefined when the pattern leaves the extension open. */
function extensionsOf(glob: string): readonly string[] | undefined {
  const match = /\.(?:(\w+)|\{([\w,]+)\})$/.exec(glob);
  return match === null ? undefined : (match[1] ?? match[2] ?? "").split(",").map((extension) => `.${extension}`);
}

function isMeant({ root, extensions }: Target, path: string): boolean {
  if (path !== root && !path.startsWith(root.endsWith("/") ? root : `${root}/`)) return false;
  return extensions === undefined || extensions.some((extension) => path.endsWith(extension));
}

function gather(settleMs: number, onChange: (files: ReadonlySet<string>) => void) {
  let files = new Set<string>();
  let firstAtMs = 0;
  let timer: NodeJS.Timeout | undefined;
  const looks = new Set<NodeJS.Timeout>();
  let isClosed = false;
  const flush = (): void => {
    const settled = files;
    files = new Set();
    lookAgain(settled);
    onChange(settled);
  };
  const lookAgain = (settled: ReadonlySet<string>): void => {
    const told = new Map([...settled].map((path) => [path, stateOf(path)]));
    const look = setTimeout(() => {
      looks.delete(look);
      for (const [path, state] of told) if (stateOf(path) !== state) add(path);
    }, SECOND_LOOK_MS);
    looks.add(look.unref());
  };
  const add = (path: string): void => {
    if (isClosed) return;
    const now = performance.now();
    if (files.size === 0) firstAtMs = now;
    files.add(path);
    clearTimeout(timer);
    const latestMs = firstAtMs + settleMs * LONGEST_WAIT_IN_SETTLES;
    timer = setTimeout(flush, Math.max(0, Math.min(settleMs, latestMs - now)));
  };
  return {
    add,
    close(): void {
      isClosed = true;
      clearTimeout(timer);
      for (const look of looks) clearTimeout(look);
    },
  };
}

/** A text that differs when the file differs. */
export function stateOf(path: string): string {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return "";
  // Changes in a folder are reported for its files.
  if (stats.isDirectory()) return `folder ${stats.ino}`;
  return `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
}
