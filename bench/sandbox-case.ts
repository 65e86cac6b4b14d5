import { median, quantile } from "./statistics.ts";

/** Code whose result is known at a look. */
export const CODE = "print(6 * 7)";

export interface SandboxCase {
  readonly name: string;
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Something that cannot be measured on this machine, and why. */
export interface AbsentCase {
  readonly name: string;
  readonly reason: string;
}

/** One name for the measurement, the table and the goals. */
export const CASES = {
  echo: "echo, the bare round trip",
  python: "code_run python, warm",
  node: "code_run node, warm",
  shell: "shell_exec true",
  read: "file_read 1 KB",
  bash: "bash -c true, a plain subprocess",
  bubblewrap: "bwrap … true, fresh for each command",
  pooled: "pooled create + first result",
  silent: "the same out of a silence",
  silentEcho: "echo out of a silence",
  cold: "cold create + first result",
  dockerRun: "docker run, create + first result",
  dockerExec: "docker exec true",
  sandboxRuntime: "sandbox-runtime true",
  burst: "create + first result, 50 at once",
  alone: "file_read 1 KB, one sandbox alone",
  crowded: "file_read 1 KB, one of 50 sandboxes",
  inTurn: "file_read 1 KB, 50 sandboxes in turn",
} as const;

export function toCase(name: string, ms: readonly number[]): SandboxCase {
  return { name, samples: ms.length, p50Ms: median(ms), p99Ms: quantile(ms, 0.99) };
}

/** Each round takes one sample of each, so that a busy moment of the machine hits all alike. */
export async function interleave(
  work: Readonly<Record<string, () => Promise<number>>>,
  { rounds, warmupRounds }: { readonly rounds: number; readonly warmupRounds: number },
): Promise<readonly SandboxCase[]> {
  const samples = Object.entries(work).map(([name, measure]) => ({ name, measure, ms: new Array<number>() }));
  for (let round = -warmupRounds; round < rounds; round += 1) {
    for (const { measure, ms } of samples) {
      const sample = await measure();
      if (round >= 0) ms.push(sample);
    }
  }
  return samples.map(({ name, ms }) => toCase(name, ms));
}
