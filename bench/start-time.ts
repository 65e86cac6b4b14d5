import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { newDataFolder, ServerProcess } from "./server-process.ts";
import { median } from "./statistics.ts";
import type { Target } from "./targets.ts";

export interface StartResult {
  readonly target: string;
  readonly milliseconds: number;
  /** How many times as long as `node -e 0` takes. */
  readonly ratioToNode: number;
}

/** From the start of the process to its answer to `initialize` over stdio, interleaved with the bare start of Node. */
export async function measureStart(targets: readonly Target[], rounds: number): Promise<readonly StartResult[]> {
  const present = targets.filter(({ doors, args }) => doors.includes("stdio") && existsSync(args[0] ?? ""));
  const nodeMs: number[] = [];
  const targetMs = new Map(present.map(({ name }) => [name, new Array<number>()]));
  // What a first start has written down is there at every later one.
  const dataFolders = new Map(present.map(({ name }) => [name, newDataFolder()]));
  for (const { name, args } of present) await (await ServerProcess.startStdio(args, dataFolders.get(name))).stop();
  for (let round = 0; round < rounds; round += 1) {
    nodeMs.push(await timeOf(startNode));
    for (const { name, args } of present) {
      let server: ServerProcess | undefined;
      const milliseconds = await timeOf(async () => {
        server = await ServerProcess.startStdio(args, dataFolders.get(name));
      });
      targetMs.get(name)?.push(milliseconds);
      await server?.stop();
    }
  }
  const node = median(nodeMs);
  const result = (target: string, milliseconds: number): StartResult => ({
    target,
    milliseconds,
    ratioToNode: milliseconds / node,
  });
  return [result("node -e 0", node), ...[...targetMs].map(([target, values]) => result(target, median(values)))];
}

async function startNode(): Promise<void> {
  await once(spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }), "exit");
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
