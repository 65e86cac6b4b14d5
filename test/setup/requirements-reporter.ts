import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Reporter, TestModule, TestRunEndReason } from "vitest/node";
import { judge, parseCriteria, provenIn, renderRequirements, type TestOutcome } from "./requirements.ts";

/** `check` and `write` are for full runs; a partial run says nothing about what is proven. */
export type RequirementsMode = "check" | "write" | "ignore";

const ROOT = join(import.meta.dirname, "..", "..");
const REQUIREMENTS = join(ROOT, "docs", "requirements.md");

/** Holds a full run against the criteria, and says why tests were skipped. */
export class RequirementsReporter implements Reporter {
  readonly #mode: RequirementsMode;

  constructor(mode: RequirementsMode) {
    this.#mode = mode;
  }

  onTestRunEnd(modules: readonly TestModule[], _errors: readonly unknown[], reason: TestRunEndReason): void {
    printSkipped(modules, this.#mode);
    if (this.#mode === "ignore" || reason === "interrupted") return;
    const criteria = parseCriteria(readFileSync(join(ROOT, "docs", "criteria.tsv"), "utf8"));
    const tests = modules.flatMap(outcomesOf);
    const verdict = judge({ criteria, tests, recorded: provenIn(readRequirements()) });
    complain("these tags name no criterion of docs/criteria.tsv", verdict.unknown);
    complain("docs/requirements.md lists these criteria as proven, and no passing test proves them now", verdict.lost);
    if (this.#mode === "check") {
      if (verdict.unrecorded.length > 0) {
        print(`newly proven, record them with npm run requirements: ${verdict.unrecorded.join(", ")}`);
      }
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
