import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { clientReference } from "./generators/client-reference.ts";
import { configDocs } from "./generators/config-reference.ts";
import { errorReference } from "./generators/error-reference.ts";
import { grafanaDashboard } from "./generators/grafana-dashboard.ts";
import type { Generator } from "./generators/generator.ts";
import { importTable } from "./generators/import-table.ts";
import { metricReference } from "./generators/metric-reference.ts";
import { routeTable } from "./generators/route-table.ts";
import { lockFiles } from "./generators/lock-files.ts";

/** Every file that is made from code. `docs/requirements.md` is not here: it is made from a test run. */
const GENERATORS: readonly Generator[] = [
  importTable,
  lockFiles,
  routeTable,
  errorReference,
  configDocs,
  clientReference,
  metricReference,
  grafanaDashboard,
];

const ROOT = join(import.meta.dirname, "..");

async function staleFiles(): Promise<Map<string, string>> {
  const stale = new Map<string, string>();
  for (const generate of GENERATORS) {
    for (const [path, text] of await generate(ROOT)) {
      const current = await readFile(join(ROOT, path), "utf8").catch(() => undefined);
      if (current !== text) stale.set(path, text);
    }
  }
  return stale;
}

const stale = await staleFiles();
if (process.argv.includes("--check")) {
  if (stale.size > 0) {
    console.error(`generated files are not up to date; run: npm run generate\n  ${[...stale.keys()].join("\n  ")}`);
    process.exitCode = 1;
  }
} else {
  for (const [path, text] of stale) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
    console.error(`wrote ${path}`);
  }
}
