// npm run test:mutants: changes one place of `src` at a time and counts how many changes `npm test` catches.
//
//   npm run test:mutants                          60 changes, spread over the folders of src
//   npm run test:mutants -- --count 10 --seed 7   other changes; the same seed makes the same ones
//   npm run test:mutants -- --only src/ledger     changes of one folder
//   npm run test:mutants -- --list                prints the changes and runs nothing
//   npm run test:mutants -- --quick               only the unit tests that import the changed file
//
// It works on a clone of the last commit in .cache/mutants, so uncommitted changes are not part of it. For each change it runs the unit
// tests that import the file, and then the whole of `npm test` until the first failure. It stops with exit code 1 when fewer than nine in
// ten changes are caught. Results are appended to .cache/mutants.jsonl; a run that was ended goes on where it stopped.
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import ts from "typescript-6";

const ROOT = join(import.meta.dirname, "..");
const CLONE = join(ROOT, ".cache", "mutants");
const RESULTS = join(ROOT, ".cache", "mutants.jsonl");
const LEAST_CAUGHT = 0.9;
/** A change that makes a test hang is caught: no unit tests take so long. */
const RELATED_LIMIT_MS = 5 * 60_000;
const LARGEST_NUMBER = 16;
const WHOLE_LIMIT_MS = 30 * 60_000;

/** @typedef {{ file: string, line: number, start: number, end: number, before: string, after: string }} Mutant */
/** @typedef {Mutant & { caughtBy: "unit tests" | "npm test" | undefined }} Result */

const OPERATORS = new Map([
  ["===", "!=="],
  ["!==", "==="],
  ["<", "<="],
  ["<=", "<"],
  [">", ">="],
  [">=", ">"],
  ["&&", "||"],
  ["||", "&&"],
  ["+", "-"],
  ["-", "+"],
  ["*", "/"],
]);

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "src" },
    list: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
  },
});

const random = randomFrom(Number(values.seed));
const mutants = choose(Number(values.count));
if (values.list) {
  for (const mutant of mutants) console.log(describe(mutant));
} else {
  prepareClone();
  const known = readResults();
  const results = mutants.map((mutant, index) => {
    const result = known.find((earlier) => describe(earlier) === describe(mutant)) ?? evaluate(mutant);
    console.log(`${index + 1} of ${mutants.length}: ${result.caughtBy ?? "NOT CAUGHT"}: ${describe(mutant)}`);
    return result;
  });
  const caught = results.filter(({ caughtBy }) => caughtBy !== undefined).length;
  console.log(`test:mutants: ${caught} of ${results.length} changes caught`);
  if (caught < results.length * LEAST_CAUGHT) process.exitCode = 1;
}

/** One change a file, from the folders in turn. @param {number} count @returns {Mutant[]} */
function choose(count) {
  const files = filesBelow(values.only).map((file) => ({ file, folder: file.split("/").slice(0, 2).join("/") }));
  const folders = shuffle([...new Set(files.map(({ folder }) => folder))]).map((folder) =>
    shuffle(files.filter((entry) => entry.folder === folder)),
  );
  /** @type {Mutant[]} */
  const chosen = [];
  while (chosen.length < count && folders.some((rest) => rest.length > 0)) {
    for (const rest of folders) {
      const next = rest.pop();
      if (next === undefined || chosen.length === count) continue;
      const [mutant] = shuffle(mutantsOf(next.file));
      if (mutant !== undefined) chosen.push(mutant);
    }
  }
  return chosen;
}

/** @param {string} folder @returns {string[]} */
function filesBelow(folder) {
  if (folder.endsWith(".ts")) return [folder];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return filesBelow(path);
      return entry.name.endsWith(".ts") && !entry.name.endsWith(".d.ts") ? [path] : [];
    });
}

/** @param {string} file @returns {Mutant[]} */
function mutantsOf(file) {
  const text = readFileSync(join(ROOT, file), "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  /** @type {Mutant[]} */
  const found = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    for (const { of, after } of changesOf(node)) {
      const start = of.getStart(source);
      const before = text.slice(start, of.end);
      const line = source.getLineAndCharacterOfPosition(start).line + 1;
      if (!before.includes("\n")) found.push({ file, line, start, end: of.end, before, after });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** What may be written in place of a node or a part of it. @param {ts.Node} node @returns {{ of: ts.Node, after: string }[]} */
function changesOf(node) {
  if (ts.isBinaryExpression(node)) return operatorChanges(node);
  if (ts.isIfStatement(node)) return [{ of: node.expression, after: `!(${node.expression.getText()})` }];
  // A size or a time that is larger by one is the same to any test.
  if (ts.isNumericLiteral(node) && Number(node.text) <= LARGEST_NUMBER)
    return [{ of: node, after: `(${node.text} + 1)` }];
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [{ of: node, after: "false" }];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [{ of: node, after: "true" }];
  const isRemovable = ts.isExpressionStatement(node) || (ts.isReturnStatement(node) && node.expression === undefined);
  return isRemovable && ts.isBlock(node.parent) ? [{ of: node, after: ";" }] : [];
}

/** @param {ts.BinaryExpression} node @returns {{ of: ts.Node, after: string }[]} */
function operatorChanges({ left, operatorToken, right }) {
  const after = OPERATORS.get(operatorToken.getText());
  const isText = [left, right].some((side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side));
  return after === undefined || (after === "-" && isText) ? [] : [{ of: operatorToken, after }];
}

/** @param {Mutant} mutant @returns {Result} */
function evaluate(mutant) {
  const path = join(CLONE, mutant.file);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.slice(0, mutant.start) + mutant.after + text.slice(mutant.end));
  try {
    const result = { ...mutant, caughtBy: caughtBy(mutant.file) };
    appendFileSync(RESULTS, `${JSON.stringify({ seed: values.seed, ...result })}\n`);
    return result;
  } finally {
    writeFileSync(path, text);
  }
}

/** @param {string} file @returns {Result["caughtBy"]} */
function caughtBy(file) {
  const vitest = ["node_modules/vitest/vitest.mjs", "related", file, "--run", "--project", "unit", "--bail", "1"];
  if (!run([...vitest, "--passWithNoTests"], RELATED_LIMIT_MS)) return "unit tests";
  if (values.quick) return undefined;
  return run(["scripts/test.mjs", "--bail", "1"], WHOLE_LIMIT_MS) ? undefined : "npm test";
}

/** Whether a script of the clone ended well in time. @param {readonly string[]} args @param {number} timeout */
function run(args, timeout) {
  return spawnSync(process.execPath, args, { cwd: CLONE, stdio: "ignore", timeout }).status === 0;
}

function prepareClone() {
  const head = git(ROOT, "rev-parse", "HEAD");
  if (existsSync(CLONE) && git(CLONE, "rev-parse", "HEAD") !== head) rmSync(CLONE, { recursive: true, force: true });
  if (!existsSync(CLONE)) {
    rmSync(RESULTS, { force: true });
    git(ROOT, "clone", "--quiet", "--no-hardlinks", ".", CLONE);
  }
  git(CLONE, "checkout", "--quiet", "--", ".");
  if (!run(["scripts/setup.mjs", "test"], WHOLE_LIMIT_MS)) throw new Error(`set-up of ${CLONE} failed`);
}

/** @param {string} cwd @param {readonly string[]} args */
function git(cwd, ...args) {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  return stdout.trim();
}

/** @returns {Result[]} */
function readResults() {
  if (!existsSync(RESULTS)) return [];
  return readFileSync(RESULTS, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** @param {Mutant} mutant */
function describe({ file, line, before, after }) {
  return `${file}:${line}: ${before} -> ${after === ";" ? "(removed)" : after}`;
}

/** @template T @param {readonly T[]} items @returns {T[]} */
function shuffle(items) {
  return items
    .map((item) => ({ item, key: random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

/** Mulberry32: the same numbers for the same seed. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
