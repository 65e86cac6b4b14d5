import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Reporter, TestModule, TestRunEndReason } from "vitest/node";
import { renderFigures } from "./figures.ts";
import { judge, parseCriteria, provenIn, renderRequirements, type TestOutcome } from "./requirements.ts";

/** `check` and `write` are for whole tiers; a partial run says nothing about what is proven. */
export type RequirementsMode = "check" | "write" | "ignore";

export interface RunReporterOptions {
  readonly requirements: RequirementsMode;
  /** The command that the summary names. */
  readonly tier: string;
  /** Prints the slowest files and where the time went. */
  readonly withFigures: boolean;
}

const ROOT = join(import.meta.dirname, "..", "..");
const REQUIREMENTS = join(ROOT, "docs", "requirements.md");

/** Says why tests were skipped, compares the run with the criteria, and ends with the summary of the tier. */
export class RunReporter implements Reporter {
  readonly #options: RunReporterOptions;
  #startMs = 0;

  constructor(options: RunReporterOptions) {
    this.#options = options;
  }

  onTestRunStart(): void {
    this.#startMs = performance.now();
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[], reason: TestRunEndReason): void {
    const { requirements, tier, withFigures } = this.#options;
    const elapsedMs = performance.now() - this.#startMs;
    printSkipped(modules, requirements);
    if (requirements !== "ignore" && reason !== "interrupted") compareWithCriteria(modules, requirements, reason);
    if (withFigures) console.log(renderFigures(modules, elapsedMs));
    const count = (state: "passed" | "failed" | "skipped"): number =>
      modules.reduce((sum, module) => sum + [...module.children.allTests(state)].length, 0);
    const unhandled = errors.length === 0 ? "" : `, ${errors.length} errors outside of tests`;
    console.log(
      `${tier}: ${reason}: ${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped${unhandled}, ${durationOf(elapsedMs)}`,
    );
  }
}

function compareWithCriteria(modules: readonly TestModule[], mode: "check" | "write", reason: TestRunEndReason): void {
  const criteria = parseCriteria(readFileSync(join(ROOT, "docs", "criteria.tsv"), "utf8"));
  const tests = modules.flatMap(outcomesOf);
  const folders = new Set(tests.map(({ file }) => folderOf(file)));
  // A tier can lose only what its own folders prove.
  const recorded = provenIn(readRequirements(), mode === "write" ? undefined : (file) => folders.has(folderOf(file)));
  const verdict = judge({ criteria, tests, recorded });
  complain("these tags name no criterion of docs/criteria.tsv", verdict.unknown);
  complain("docs/requirements.md lists these criteria as proven, and no passing test proves them now", verdict.lost);
  if (mode === "check") {
    const known = provenIn(readRequirements());
    const fresh = verdict.unrecorded.filter((id) => !known.includes(id));
    if (fresh.length > 0) print(`newly proven, record them with npm run test:all: ${fresh.join(", ")}`);
    return;
  }
  if (reason === "failed" || verdict.unknown.length > 0 || verdict.lost.length > 0) {
    print("docs/requirements.md is left as it was");
    process.exitCode = 1;
    return;
  }
  writeFileSync(REQUIREMENTS, renderRequirements(criteria, tests));
  print(`wrote docs/requirements.md: ${verdict.proven.size} of ${criteria.length} criteria are proven`);
}

/** `test/unit` of `test/unit/auth/keys.test.ts`. */
function folderOf(file: string): string {
  return file.split("/").slice(0, 2).join("/");
}

function durationOf(elapsedMs: number): string {
  const seconds = Math.round(elapsedMs / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function outcomesOf(module: TestModule): TestOutcome[] {
  return [...module.children.allTests()].map((test) => {
    const { state } = test.result();
    return { file: module.relativeModuleId, name: test.fullName, state: state === "pending" ? "skipped" : state };
  });
}

/** In a partial run the tests that were not asked for count as skipped too; only a reason tells the others apart. */
function printSkipped(modules: readonly TestModule[], mode: RequirementsMode): void {
  for (const module of modules) {
    for (const test of module.children.allTests("skipped")) {
      const result = test.result();
      const why = "note" in result ? result.note : undefined;
      if (why === undefined && mode === "ignore") continue;
      print(
        `skipped ${module.relativeModuleId}: ${test.fullName}: ${why ?? "no reason given: use context.skip(reason)"}`,
      );
    }
  }
}

function complain(what: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  print(`FAILED: ${what}:\n  ${lines.join("\n  ")}`);
  process.exitCode = 1;
}

function print(line: string): void {
  console.log(`requirements: ${line}`);
}

function readRequirements(): string {
  try {
    return readFileSync(REQUIREMENTS, "utf8");
  } catch {
    // Before the first run nothing is recorded.
    return "";
  }
}
