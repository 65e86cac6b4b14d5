import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { call, type Called, type Place } from "../e2e/sandbox-client.ts";

/** One sandbox, seen through the tools. */
export interface Inside {
  readonly id: string;
  call(name: string, args?: Record<string, unknown>): Promise<Called>;
  /** What a command wrote to stdout, however it ended. */
  sh(command: string, timeoutSeconds?: number): Promise<string>;
  python(code: string): Promise<string>;
}

export async function openInside(client: Client, wish: Record<string, unknown> = {}): Promise<Inside> {
  const made = await call(client, "sandbox_create", wish);
  if (made.structuredContent === undefined) throw new Error(textOf(made));
  const id = String(made.structuredContent["session_id"]);
  const inside = (name: string, args: Record<string, unknown> = {}): Promise<Called> =>
    call(client, name, { ...args, session_id: id });
  return {
    id,
    call: inside,
    sh: async (command, timeoutSeconds = 30) =>
      stdoutOf(await inside("shell_exec", { command, timeout_seconds: timeoutSeconds })),
    python: async (code) => stdoutOf(await inside("code_run", { code, language: "python" })),
  };
}

export function textOf({ content }: Called): string {
  return content.map(({ text = "" }) => text).join("\n");
}

/** Failures carry what came out as JSON in the last line of their text. */
function stdoutOf(called: Called): string {
  const facts = called.structuredContent ?? JSON.parse(textOf(called).split("\n").at(-1) ?? "{}");
  return String(facts["stdout"]);
}

/** `attempt(name, act)` prints whether the act was done; nothing but an error of the system counts as a refusal. */
export const ATTEMPT = `
def attempt(name, act):
    try: print(name, "done", act())
    except OSError as error: print(name, "refused")
`;

/** Names of the cells that servers of this data folder have now; of bubblewrap alone. */
export function instanceIds({ dataFolder }: Place): string[] {
  const folder = join(dataFolder, "bubblewrap", "cells");
  return existsSync(folder) ? readdirSync(folder).map((name) => name.replace(/\.json$/, "")) : [];
}

/** Ids of the servers that use this data folder now. Groups of the kernel carry them in their names. */
export function serverIds({ dataFolder }: Place): string[] {
  try {
    return readdirSync(join(dataFolder, "bubblewrap", "servers")).map((name) => name.replace(/\.json$/, ""));
  } catch {
    return [];
  }
}

export interface HostProcess {
  readonly pid: number;
  readonly parentPid: number;
  readonly uid: number;
  readonly command: string;
  readonly state: string;
  /** Known by the groups of the kernel; empty where there are none. */
  readonly server: string;
  readonly cell: string;
}

/** Every process that runs in a sandbox of these servers, as the host sees it. */
export function processesOf(ids: readonly string[]): HostProcess[] {
  return allProcesses().filter(({ cell, server }) => cell !== "" && ids.includes(server));
}

/** Every process that the server started, in sandboxes and before, and what those started. The server itself is none of them. */
export function processesBelow(serverPid: number | undefined): HostProcess[] {
  return below(allProcesses(), new Set([serverPid]));
}

/** Children, and what those started. */
export function below(all: readonly HostProcess[], parents: ReadonlySet<number | undefined>): HostProcess[] {
  const children = all.filter(({ parentPid }) => parents.has(parentPid));
  return children.length === 0 ? [] : [...children, ...below(all, new Set(children.map(({ pid }) => pid)))];
}

/** Folders of the host in which the kernel shows groups of these processes; none where they have only those of the test. */
export function groupFolders(processes: readonly HostProcess[]): string[] {
  const own = new Set(read("/proc/self/cgroup").split("\n"));
  const lines = processes.flatMap(({ pid }) => read(`/proc/${pid}/cgroup`).split("\n"));
  const folders = lines
    .filter((line) => !own.has(line))
    .map((line) => {
      const [, controllers = "", path = ""] = line.split(":");
      return join("/sys/fs/cgroup", controllers.replace(/^name=/, ""), path);
    });
  return [...new Set(folders)].filter((folder) => existsSync(folder));
}

/** For an account that nobody else has. */
export function processesOfUser(uid: number): HostProcess[] {
  return allProcesses().filter((process) => process.uid === uid);
}

export function allProcesses(): HostProcess[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const status = read(`/proc/${entry}/status`);
      if (status === "") return [];
      const groups = read(`/proc/${entry}/cgroup`);
      return [
        {
          pid: Number(entry),
          parentPid: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]),
          uid: Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]),
          command: read(`/proc/${entry}/cmdline`).replaceAll("\0", " ").trim(),
          state: /^State:\s+(\S)/m.exec(status)?.[1] ?? "gone",
          server: /\/owlclaw-([A-Za-z0-9_-]+)\//.exec(groups)?.[1] ?? "",
          cell: /\/((?:owl|probe)-[0-9a-f]+)/.exec(groups)?.[1] ?? "",
        },
      ];
    });
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process ended meanwhile.
    return "";
  }
}
