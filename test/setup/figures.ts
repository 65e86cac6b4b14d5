import type { TestModule } from "vitest/node";
import { toTable } from "../../scripts/generators/markdown-table.ts";
import type { FileFigures } from "./file-figures.ts";

const SLOWEST = 40;

interface Row {
  readonly name: string;
  readonly files: number;
  readonly wallMs: number;
  readonly setUpMs: number;
  readonly cpuMs: number;
}

/** Where the time of a run went: by project, and the slowest files. */
export function renderFigures(modules: readonly TestModule[], elapsedMs: number): string {
  const files = modules.map((module) => rowOf(module.relativeModuleId, [module]));
  const names = new Set(modules.map(({ project }) => project.name));
  const byProject = [...names].map((name) =>
    rowOf(
      name,
      modules.filter(({ project }) => project.name === name),
    ),
  );
  const slowest = files.toSorted((a, b) => b.wallMs - a.wallMs).slice(0, SLOWEST);
  const total = rowOf("all", modules);
  return [
    `Figures: ${seconds(elapsedMs)} s in all. "set-up" is start of the process and imports, "CPU" is that of the tests and of the processes that they waited for, "waiting" is the rest.`,
    table(["project", "files"], [...byProject, total]),
    `The ${slowest.length} slowest files:`,
    table(["file", "files"], slowest),
  ].join("\n\n");
}

function rowOf(name: string, modules: readonly TestModule[]): Row {
  const sum = (part: (module: TestModule) => number): number =>
    modules.reduce((total, module) => total + part(module), 0);
  const setUp = (module: TestModule): number => {
    const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration } = module.diagnostic();
    return environmentSetupDuration + prepareDuration + collectDuration + setupDuration;
  };
  return {
    name,
    files: modules.length,
    wallMs: sum((module) => module.diagnostic().duration + setUp(module)),
    setUpMs: sum(setUp),
    cpuMs: sum((module) => cpuMsOf(module.meta().figures)),
  };
}

function table(head: readonly string[], rows: readonly Row[]): string {
  return toTable(
    [...head, "wall s", "set-up s", "CPU s", "waiting s"],
    rows.map((row) => [
      row.name,
      String(row.files),
      seconds(row.wallMs),
      seconds(row.setUpMs),
      seconds(row.cpuMs),
      seconds(Math.max(0, row.wallMs - row.cpuMs)),
    ]),
  );
}

function seconds(durationMs: number): string {
  return (durationMs / 1000).toFixed(1);
}

function cpuMsOf(figures: FileFigures | undefined): number {
  return figures?.cpuMs ?? 0;
}
