import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const MINUTES = process.env["OWLCLAW_SOAK_MINUTES"] ?? "5";

test(`memory, descriptors, processes, event loop, CPU and p50 stay as they are over ${MINUTES} minutes of mixed calls`, async () => {
  const json = `${temporaryFolder({})}/soak.json`;
  const tsx = import.meta.resolve("tsx");
  const args = ["--import", tsx, `${ROOT}/bench/run.ts`, "--soak-mixed", MINUTES, "--check", "--json", json];
  const bench = spawn(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "pipe", "ignore"] });
  const [out] = await Promise.all([text(bench.stdout), once(bench, "exit")]);
  expect({ code: bench.exitCode, out }).toMatchObject({ code: 0 });
});
