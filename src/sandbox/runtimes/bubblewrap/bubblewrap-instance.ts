import { setTimeout as delay } from "node:timers/promises";
import { OwlError } from "../../../errors/owl-error.ts";
import type { Instance, InstanceExit } from "../runtime.ts";
import { type InstanceMount, checkMounts } from "../instance-mounts.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { type ControlGroup, endGroups, tryKill } from "./cgroups/limited-groups.ts";
import { DETACH_TIMEOUT_MS } from "./disk-image.ts";
import { type LaunchedProcess, readBounded } from "./launch.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "../../../platform/process-identity.ts";
import { processTree, processTreeUsage } from "../process-tree.ts";
import type { InstanceRecord } from "./records.ts";

const MAX_ERROR_CHARS = 4096;
const MAX_PAUSE_MS = 20;
/** The exit code of a shell, and of bwrap, for a program that was ended by SIGKILL. */
const KILLED_CODE = 128 + 9;

export interface LaunchedInstance {
  readonly launched: LaunchedProcess;
  readonly record: InstanceRecord;
  readonly group: ControlGroup | undefined;
  readonly mounts: readonly InstanceMount[];
}

export interface BubblewrapInstance extends Instance {
  readonly group: ControlGroup | undefined;
  /** Process ids on the host. */
  processes(): Promise<readonly number[]>;
  /** Resolves after its end, when its control groups are removed. It never rejects: failures are logged. */
  readonly cleared: Promise<void>;
  /** Kills every process in it, without waiting. */
  end(reason: InstanceExit["reason"]): void;
}

/** Follows a launched process until the first process inside exists, and from there to its end. */
export async function adoptInstance(host: BubblewrapHost, running: LaunchedInstance): Promise<BubblewrapInstance> {
  const { launched, group, record } = running;
  const { child, stream, diagnostics } = launched;
  let endReason: InstanceExit["reason"];
  const ended = launched.end.then(async ({ code, signal }): Promise<InstanceExit> => {
    const reason = endReason ?? (await outOfMemory(group, code, signal));
    return { code, signal, ...(reason === undefined ? {} : { reason }) };
  });
  const initPid = await launched.initPid;
  const init = initPid === undefined ? undefined : identifyProcess(initPid);
  const recorded = init === undefined ? undefined : host.records.writeInstance({ ...record, init });
  // In this order: process ids and group names of an ended instance may be reused, so its record must not name them.
  const cleared = Promise.allSettled([ended, recorded])
    .then(async () => await clear(host, running, init))
    .catch((error: unknown) => host.logger.error("a stopped sandbox was not cleared", { cell: record.id, error }));
  if (initPid === undefined) {
    const message = await readBounded(diagnostics, MAX_ERROR_CHARS);
    await cleared;
    throw notStarted(message.trim());
  }
  await recorded;

  const end = (reason: InstanceExit["reason"]): void => {
    // A guest whose output ended before had another reason.
    if (!stream.readableEnded) endReason ??= reason;
    child.kill("SIGKILL");
    if (init !== undefined && isAlive(init)) tryKill(init.pid);
  };
  return {
    id: record.id,
    stream,
    diagnostics,
    exited: ended,
    checkMounts: () => checkMounts(initPid, running.mounts),
    usage: async () => (group === undefined ? await processTreeUsage(initPid) : await group.usage()),
    group,
    processes: () => processTree(initPid),
    cleared,
    end,
    stop: async () => {
      end("stopped");
      await cleared;
      stream.destroy();
      diagnostics.destroy();
    },
  };
}

function notStarted(message: string): OwlError {
  return new OwlError("internal", `the sandbox could not be started: ${message || "bwrap ended without a message"}`, {
    hint: "Run `owlclaw mcp-server doctor`: it names what is missing.",
  });
}

async function clear(
  host: BubblewrapHost,
  running: LaunchedInstance,
  init: ProcessIdentity | undefined,
): Promise<void> {
  const isEnded = running.group === undefined || (await endGroups(running.group.folders));
  if (!isEnded || !(await waitUntilGone(init))) {
    host.logger.error("a process of a stopped sandbox does not end", { cell: running.record.id });
    return;
  }
  await host.records.writeInstance({ ...running.record, groups: [] });
}

async function waitUntilGone(init: ProcessIdentity | undefined): Promise<boolean> {
  if (init === undefined) return true;
  const deadline = performance.now() + DETACH_TIMEOUT_MS;
  for (let pauseMs = 1; isAlive(init); pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    if (performance.now() > deadline) return false;
    tryKill(init.pid);
    await delay(pauseMs);
  }
  return true;
}

async function outOfMemory(
  group: ControlGroup | undefined,
  code: number | null,
  signal: NodeJS.Signals | null,
): Promise<"memory" | undefined> {
  if (signal !== "SIGKILL" && code !== KILLED_CODE) return undefined;
  return group !== undefined && (await group.outOfMemoryKills()) > 0 ? "memory" : undefined;
}
