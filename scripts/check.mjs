// npm run check: everything that can be said about the code without running it. All steps run, so that one look shows all.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setUp } from "./setup.mjs";

const ROOT = join(import.meta.dirname, "..");

const STEPS = [
  { name: "format", command: ["oxfmt", "--check", "."], fix: "npm run fix" },
  { name: "lint", command: ["oxlint", "--type-aware", "--deny-warnings", "--report-unused-disable-directives"] },
  // By its path: the compiler with the API, a dependency, has a bin of the same name.
  { name: "types", command: ["../typescript/bin/tsc", "-p", "tsconfig.json"] },
  // What runs inside pages knows the DOM, and nothing else does.
  { name: "types of pages", command: ["../typescript/bin/tsc", "-p", "guest/browser/page/tsconfig.json"] },
  { name: "types of the dashboard", command: ["../typescript/bin/tsc", "-p", "web/tsconfig.json"] },
  { name: "dead code", command: ["knip"] },
  { name: "generated files", command: ["tsx", "scripts/generate.ts", "--check"] },
];

await setUp("check");
const failed = STEPS.filter(({ name, command: [tool = "", ...args], fix }) => {
  const startMs = Date.now();
  const { status } = spawnSync(join(ROOT, "node_modules", ".bin", tool), args, { cwd: ROOT, stdio: "inherit" });
  const verdict = status === 0 ? "ok" : `FAILED${fix === undefined ? "" : ` (to repair: ${fix})`}`;
  console.error(`check: ${name} ${verdict} (${Date.now() - startMs} ms)`);
  return status !== 0;
});
if (failed.length > 0) process.exit(1);
