import type { Launcher } from "./running-process.ts";
import { Spawner } from "./spawner.ts";
import { UnsupervisedLauncher } from "./unsupervised.ts";

interface ChosenLauncher {
  readonly launcher: Launcher;
  /** The interpreter itself, when the found one is a version manager's shim. */
  readonly resolvePython: (found: string) => Promise<string>;
}

/** Supervision needs Python. Without it programs run unsupervised, and some of their processes may not be found. */
export function chooseLauncher(options: {
  readonly python: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly dataBytes: number | undefined;
  readonly onDiagnostic: (text: string) => void;
}): ChosenLauncher {
  const { python, environment, dataBytes, onDiagnostic } = options;
  const fallback = new UnsupervisedLauncher(dataBytes);
  const consequence = "processes that clear their environment can survive a time-out";
  if (python === undefined) {
    onDiagnostic(`python3 is not on PATH: ${consequence}`);
    return { launcher: fallback, resolvePython: (found) => Promise.resolve(found) };
  }
  const spawner = new Spawner({ python, env: environment, dataBytes, onDiagnostic });
  const chosen: Promise<Launcher> = spawner.interpreter.then(
    () => spawner,
    () => {
      onDiagnostic(`${python} does not work: ${consequence}`);
      return fallback;
    },
  );
  const launcher: Launcher = {
    launch: async (launch) => await (await chosen).launch(launch),
    close: () => {
      spawner.close();
      fallback.close();
    },
  };
  return { launcher, resolvePython: (found) => spawner.interpreter.catch(() => found) };
}
