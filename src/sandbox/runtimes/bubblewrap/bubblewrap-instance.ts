import { setTimeout as delay } from "node:timers/promises";
import { OwlError } from "../../../errors/owl-error.ts";
import type { Instance, InstanceExit } from "../runtime.ts";
import { type InstanceMount, checkMounts } from "../instance-mounts.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { type ControlGroup, endGroups, tryKill } from "./cgroups/limited-groups.ts";
import { LET_GO_TIMEOUT_MS } from "./disk-image.ts";
import { type LaunchedProcess, readBounded } from "./launch.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "../../../platform/process-identity.ts";
import { processTree, processTreeUsage } from "../process-tree.ts";
import type { InstanceRecord } from "./records.ts";

const MAX_ERROR_CHARS = 4096;
const MAX_PAUSE_MS = 20;
/** How a shell, and bwrap, tell that a program was ended by SIGKILL. */
const KILLED_CODE = 128 + 9;

export interface LaunchedInstance {
  readonly launched: LaunchedProcess;
  readonly record: InstanceRecord;
  readonly group: ControlGroup | undefined;
  readonly mounts: readonly InstanceMount[];
}

export interface BubblewrapInstance extends Instance {
  readonly group: ControlGroup | undefined;
  /** As the host numbers them. */
  processes(): Promise<readonly number[]>;
  /** After its end, when its groups are gone as well. It never fails: what could not be cleared is in the log. */
  readonly cleared: Promise<void>;
  /** Ends everything in it, without waiting. */
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
  // In this order: the record of an ended cell must not name processes and groups that others may have by then.
  const cleared = Promise.allSettled([ended, recorded])
    .then(async () => await clear(host, running, init))
    .catch((error: unknown) => host.logger.error("a stopped sandbox was not cleared", { instance: record.id, error }));
  if (initPid === undefined) {
    const told = await readBounded(diagnostics, MAX_ERROR_CHARS);
    await cleared;
    throw new OwlError("internal", `the sandbox could not be started: ${told.trim() || "bwrap ended without a word"}`, {
      hint: "Run `owlclaw mcp-server doctor`: it names what is missing.",
    });
  }
  await recorded;

  const end = (reason: InstanceExit["reason"]): void => {
    // A guest that fell silent before it was told to had another reason.
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

async function clear(
  host: BubblewrapHost,
  running: LaunchedInstance,
  init: ProcessIdentity | undefined,
): Promise<void> {
  const isEnded = running.group === undefined || (await endGroups(running.group.folders));
  if (!isEnded || !(await waitUntilGone(init))) {
    host.logger.error("a process of a stopped sandbox does not end", { instance: running.record.id });
    return;
  }
  await host.records.writeInstance({ ...running.record, groups: [] });
}

async function waitUntilGone(init: ProcessIdentity | undefined): Promise<boolean> {
  if (init === undefined) return true;
  const deadline = performance.now() + LET_GO_TIMEOUT_MS;
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
