import { toTable } from "../../scripts/generators/markdown-table.ts";

export interface Criterion {
  readonly id: string;
  readonly gist: string;
}

export interface TestOutcome {
  readonly file: string;
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
}

export interface Verdict {
  /** Criteria that at least one test proves, while no test that names them fails. */
  readonly proven: ReadonlySet<string>;
  /** Recorded as proven before, and not proven now. */
  readonly lost: readonly string[];
  /** Proven now, and not recorded yet. */
  readonly unrecorded: readonly string[];
  /** Tags that name no criterion, each with a test that carries it. */
  readonly unknown: readonly string[];
}

const INTRODUCTION = `# Requirements

<!-- Generated from a full test run by npm run test:all. Do not edit. -->

Each acceptance criterion of the product, and the files with the tests that prove it. A test proves a criterion by carrying its id in its name:
\`grep -rn '\\[004-R8.2\\]' test\` finds them.
A criterion is **proven** when such a test passes and none fails; otherwise it is **open**. Once proven, a criterion stays so:
a full test run fails when it is lost.

`;

/** Reads `docs/criteria.tsv`: a head line, then id and gist. */
export function parseCriteria(tsv: string): Criterion[] {
  return tsv
    .split("\n")
    .slice(1)
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [id = "", gist = ""] = line.split("\t");
      return { id, gist };
    });
}

/** The ids in a test's name: `[004-R1.4][000-R1.3] lists the tools`. Other brackets, as in `[2025-11-25]`, are no tags. */
export function tagsOf(name: string): string[] {
  return [...name.matchAll(/\[(\d{3}-[A-Za-z][\w.-]*)\]/g)].map(([, id = ""]) => id);
}

export function judge(options: {
  readonly criteria: readonly Criterion[];
  readonly tests: readonly TestOutcome[];
  readonly recorded: readonly string[];
}): Verdict {
  const { criteria, tests, recorded } = options;
  const known = new Set(criteria.map(({ id }) => id));
  const passed = new Set<string>();
  const failed = new Set<string>();
  const unknown: string[] = [];
  for (const test of tests) {
    for (const id of tagsOf(test.name)) {
      if (!known.has(id)) unknown.push(`${id} in ${test.file}: ${test.name}`);
      else if (test.state === "passed") passed.add(id);
      else if (test.state === "failed") failed.add(id);
    }
  }
  const proven = new Set(criteria.map(({ id }) => id).filter((id) => passed.has(id) && !failed.has(id)));
  return {
    proven,
    lost: recorded.filter((id) => !proven.has(id)),
    unrecorded: [...proven].filter((id) => !recorded.includes(id)),
    unknown,
  };
}

export function renderRequirements(criteria: readonly Criterion[], tests: readonly TestOutcome[]): string {
  const { proven } = judge({ criteria, tests, recorded: [] });
  const rows = criteria.map(({ id, gist }) => {
    return [id, proven.has(id) ? "proven" : "open", gist, proven.has(id) ? filesOf(id, tests) : ""];
  });
  const count = `${proven.size} of ${criteria.length} criteria are proven.\n\n`;
  return INTRODUCTION + count + toTable(["criterion", "status", "what must hold", "tests in"], rows);
}

/** Reads back which criteria `docs/requirements.md` lists as proven: all of them, or those that such a file proves. */
export function provenIn(requirements: string, isCounted?: (file: string) => boolean): string[] {
  return [...requirements.matchAll(/^\| (\S+) \| proven \|.*$/gm)]
    .filter(([row]) => isCounted === undefined || filesIn(row).some(isCounted))
    .map(([, id = ""]) => id);
}

function filesIn(row: string): string[] {
  return [...row.matchAll(/\(\.\.\/(test\/[^)]+)\)/g)].map(([, file = ""]) => file);
}

/** The files, one after the other; the id finds the test in them. */
function filesOf(id: string, tests: readonly TestOutcome[]): string {
  const files = tests
    .filter(({ state, name }) => state === "passed" && tagsOf(name).includes(id))
    .map(({ file }) => file);
  const linkTo = (file: string): string => `[${file.replace(/^test\//, "").replace(/\.test\.ts$/, "")}](../${file})`;
  return [...new Set(files)].toSorted().map(linkTo).join(", ");
}
