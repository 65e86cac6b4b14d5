import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { z } from "zod";

const RUNNER = path.join(import.meta.dirname, "runner/node_modules");
const NODE_22 = path.join(RUNNER, `node-linux-${process.arch}/bin/node`);
const SUITE = path.join(RUNNER, "@modelcontextprotocol/conformance/dist/index.js");
const RESULT_FOLDER = /^server-(?<scenario>.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

const Checks = z.array(
  z.object({
    id: z.string(),
    status: z.enum(["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]),
    errorMessage: z.string().optional(),
  }),
);

export type Check = z.infer<typeof Checks>[number];

export interface ScenarioResult {
  readonly scenario: string;
  readonly checks: readonly Check[];
}

export type Selection = readonly ["--requirements", "2025-11-25" | "2026-07-28"] | readonly ["--suite", "all"];

/** Runs the official suite against a server and returns what it wrote about each scenario, in the order of their names. */
export async function runSuite(url: string, selection: Selection): Promise<readonly ScenarioResult[]> {
  const outputDir = await mkdtemp(path.join(tmpdir(), "owlclaw-conformance-"));
  try {
    await runToEnd([SUITE, "server", "--url", url, ...selection, "--output-dir", outputDir]);
    return await readResults(outputDir);
  } finally {
    await rm(outputDir, { recursive: true, force: true });
  }
}

/** One line for each check that is not a success, so that a failed assertion says all there is to know. */
export function describeChecks(results: readonly ScenarioResult[], status: Check["status"]): readonly string[] {
  return results.flatMap(({ scenario, checks }) =>
    checks
      .filter((check) => check.status === status)
      .map(({ id, errorMessage }) => `${scenario} / ${id}: ${errorMessage ?? "no message"}`),
  );
}

export function countChecks(results: readonly ScenarioResult[], status: Check["status"]): number {
  return results.reduce((sum, { checks }) => sum + checks.filter((check) => check.status === status).length, 0);
}

/** The suite's exit code only repeats what the checks say, so it is not looked at; a run without results throws later. */
async function runToEnd(args: readonly string[]): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    execFile(NODE_22, [...args], { maxBuffer: MAX_OUTPUT_BYTES }, (error, _stdout, stderr) => {
      if (error !== null && typeof error.code !== "number") reject(error);
      else if (stderr.includes("SyntaxError")) reject(new Error(stderr));
      else resolve();
    });
  });
}

async function readResults(outputDir: string): Promise<readonly ScenarioResult[]> {
  const folders = (await readdir(outputDir)).toSorted();
  if (folders.length === 0) throw new Error("the conformance suite wrote no results");
  return Promise.all(
    folders.map(async (folder) => {
      const scenario = RESULT_FOLDER.exec(folder)?.groups?.["scenario"];
      if (scenario === undefined) throw new Error(`not the name of a result folder: ${folder}`);
      return { scenario, checks: await readChecks(path.join(outputDir, folder, "checks.json")) };
    }),
  );
}

/** A scenario that threw leaves its folder empty. */
async function readChecks(file: string): Promise<readonly Check[]> {
  if (!existsSync(file)) return [{ id: "scenario", status: "FAILURE", errorMessage: "it ended without a result" }];
  return Checks.parse(JSON.parse(await readFile(file, "utf8")));
}
