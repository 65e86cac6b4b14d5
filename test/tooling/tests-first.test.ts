import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const MAX_BYTES = 512 * 1024 * 1024;
const HASH_CHARS = 40;

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: MAX_BYTES }).trim();
}

/** The names under which tools are listed, as the code writes them. */
function toolNames(): string[] {
  const folder = join(ROOT, "src", "tools");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const source = files.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
  const names = source.matchAll(/\bname(?::| =) "((?:sandbox|code|shell|file|browser)_[a-z_]+)"/g);
  return [...new Set([...names].map(([, name = ""]) => name))];
}

/** For each name, the place in history of the first commit that wrote it below the folder. */
function firstCommits(names: readonly string[], folder: string, order: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const commits = git("log", "--topo-order", "--format=%x00%H", "-p", "-U0", "--", folder).split("\0").slice(1);
  for (const commit of commits.toReversed()) {
    const place = order.indexOf(commit.slice(0, HASH_CHARS));
    for (const name of names) if (!found.has(name) && commit.includes(`"${name}"`)) found.set(name, place);
  }
  return found;
}

beforeEach((context) => {
  if (!existsSync(join(ROOT, ".git"))) context.skip("this tree has no history");
});

test("[003-NFR-004] no tool came before the first test that calls it", () => {
  const names = toolNames();
  expect(names.length).toBeGreaterThanOrEqual(25);
  const order = git("rev-list", "--topo-order", "--reverse", "HEAD").split("\n");
  const written = firstCommits(names, "src/tools", order);
  const tested = firstCommits(names, "test", order);
  const late = names.filter((name) => (tested.get(name) ?? Infinity) > (written.get(name) ?? Infinity));
  expect(late).toEqual([]);
}, 60_000);
