import { DockerEngine } from "./docker-engine.ts";
import { type AbsentCase, CASES } from "./sandbox-case.ts";
import { startSandboxRuntime } from "./sandbox-runtime-peer.ts";

/** Other ways to run something in isolation. */
export interface Peers {
  readonly work: Readonly<Record<string, () => Promise<number>>>;
  readonly absent: readonly AbsentCase[];
  stop(): Promise<void>;
}

/** Starts those that this machine can run; of the others it says why not. */
export async function startPeers(log: (line: string) => void): Promise<Peers> {
  const absent: AbsentCase[] = [];
  const orAbsent = async <T>(names: readonly string[], start: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await start();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      absent.push(...names.map((name) => ({ name, reason })));
      return undefined;
    }
  };
  const docker = await orAbsent([CASES.dockerRun, CASES.dockerExec], () => DockerEngine.start(log));
  const runtime = await orAbsent([CASES.sandboxRuntime], startSandboxRuntime);
  return {
    work: {
      ...(docker !== undefined && {
        [CASES.dockerRun]: () => docker.create(),
        [CASES.dockerExec]: () => docker.exec(),
      }),
      ...(runtime !== undefined && { [CASES.sandboxRuntime]: () => runtime.run("true") }),
    },
    absent,
    stop: async () => {
      await runtime?.stop();
      await docker?.stop();
    },
  };
}
