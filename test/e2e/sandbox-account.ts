import { randomInt } from "node:crypto";
import { chownSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

/** Far from what machines and containers hand out. */
const FIRST_UID = 1_800_000_000;
const UID_COUNT = 10_000_000;

const PROJECT = resolve(import.meta.dirname, "../..");

/** Who runs a server, and with which installation. */
export interface Account {
  readonly uid: number;
  /** The Node and the entry point that this user can read. */
  readonly node: string;
  readonly main: string;
  /** Holds the installation; homes go below it. */
  readonly folder: string;
  remove(): void;
}

/**
 * An ordinary user with an installation in a folder of his own: the checkout may be where he cannot look. Root takes a
 * number that nobody else has, so that the processes of one test can be told from those of another.
 */
export function makeOrdinaryAccount(): Account {
  const ownUid = process.getuid?.() ?? 0;
  const uid = ownUid === 0 ? FIRST_UID + randomInt(UID_COUNT) : ownUid;
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-user-"));
  installPackage(folder);
  const node = readableNode(folder, uid);
  chownSync(folder, uid, uid);
  return {
    uid,
    node,
    main: join(folder, "dist/main.js"),
    folder,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** What a user has after an installation. */
function installPackage(folder: string): void {
  const lock = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; link?: boolean }>;
  };
  const needed = Object.entries(lock.packages).flatMap(([path, { dev, link }]) =>
    path.startsWith("node_modules/") && dev !== true && link !== true ? [path] : [],
  );
  for (const path of ["package.json", "dist", ...needed])
    if (existsSync(join(PROJECT, path))) cpSync(join(PROJECT, path), join(folder, path), { recursive: true });
}

/** Version managers put node below a home folder that others cannot enter. */
function readableNode(folder: string, uid: number): string {
  const isOpen = (path: string): boolean => (statSync(path).mode & 0o005) === 0o005;
  const parents = (path: string): string[] => (path === "/" ? [path] : [path, ...parents(dirname(path))]);
  if (uid === process.getuid?.() || parents(process.execPath).every(isOpen)) return process.execPath;
  const copy = join(folder, "node");
  cpSync(process.execPath, copy);
  return copy;
}
