import { mkdir, readFile, rename, rm, rmdir, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { announce, SetupError } from "./announce.mjs";

const POLL_MS = 100;
const HEARTBEAT_MS = 2_000;
/** A holder on another machine or in another container cannot be asked whether it lives: its silence tells. */
const SILENT_MS = 30_000;
const TAKEOVER_MS = 10_000;

/**
 * Runs `work` while holding a lock directory, so that two set-ups of one clone never meet. A holder that died is replaced.
 * @template T
 * @param {string} path
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(path, work) {
  await acquire(path);
  const heartbeat = setInterval(() => {
    const now = new Date();
    // A lock that is gone was taken over; the work goes on, since stopping half-way is no better.
    utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    if ((await ownerOf(path)) === self()) await rm(path, { recursive: true, force: true });
  }
}

/** @param {string} path */
async function acquire(path) {
  await makeFolder(dirname(path));
  for (let tries = 0; !(await tryMkdir(path)); tries += 1) {
    if (tries === 10) announce("another process is setting up this clone; waiting for it");
    if (await isStale(path)) await takeAway(path);
    else await delay(POLL_MS);
  }
  await writeFile(`${path}/owner`, self());
}

/** @param {string} path */
async function makeFolder(path) {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw new SetupError(`cannot write to ${path}: set up the clone once with a user who may`, { cause: error });
  }
}

/** @param {string} path */
async function tryMkdir(path) {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw new SetupError(`cannot write to ${dirname(path)}: set up the clone once with a user who may`, {
      cause: error,
    });
  }
}

/** @param {string} path */
async function isStale(path) {
  const silentMs = await ageMs(path);
  if (silentMs > SILENT_MS) return true;
  const owner = await ownerOf(path);
  if (owner === undefined) return false;
  const [host, pid] = owner.split(" ");
  return host === hostname() && !isAlive(Number(pid));
}

/**
 * Only one process at a time may take a stale lock away, and it looks again first: otherwise a slow one could take away the
 * lock that a quick one has just made.
 * @param {string} path
 */
async function takeAway(path) {
  const guard = `${path}.takeover`;
  if (!(await tryMkdir(guard))) {
    if ((await ageMs(guard)) > TAKEOVER_MS) await rmdir(guard).catch(() => undefined);
    await delay(POLL_MS);
    return;
  }
  try {
    if (!(await isStale(path))) return;
    const away = `${path}.stale-${process.pid}`;
    await rename(path, away);
    await rm(away, { recursive: true, force: true });
  } finally {
    await rmdir(guard).catch(() => undefined);
  }
}

/** @param {string} path */
async function ageMs(path) {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? 0 : Date.now() - found.mtimeMs;
}

/** @param {string} path */
async function ownerOf(path) {
  return await readFile(`${path}/owner`, "utf8").catch(() => undefined);
}

function self() {
  return `${hostname()} ${process.pid}`;
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
