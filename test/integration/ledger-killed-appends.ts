import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROCESS = fileURLToPath(new URL("./ledger-append-process.ts", import.meta.url));

export interface AppendOptions {
  readonly folder: string;
  /** What the trace ids of its rows begin with. */
  readonly name: string;
  readonly atLeast: number;
  readonly storeUrl?: string;
}

/** Appends in a process of its own until so many were acknowledged, then kills it in the middle of the next ones. */
export async function appendUntilKilled(options: AppendOptions): Promise<readonly [number, string][]> {
  const { folder, name, atLeast, storeUrl = "" } = options;
  const args = ["--import", import.meta.resolve("tsx"), PROCESS, folder, name, storeUrl];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const acknowledged: [number, string][] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const [seq, call] = line.split(" ");
    acknowledged.push([Number(seq), call ?? ""]);
    if (acknowledged.length === atLeast) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  if (child.signalCode !== "SIGKILL") throw new Error(`the process ended by itself: ${child.exitCode}`);
  return acknowledged;
}
