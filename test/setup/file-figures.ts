import { readFileSync } from "node:fs";
import { afterAll } from "vitest";

/** What one test file cost from its first import to its last hook: its own process and every process that it started and waited for. */
export interface FileFigures {
  readonly cpuMs: number;
}

declare module "vitest" {
  interface TaskMeta {
    figures?: FileFigures;
  }
}

const TICK_MS = 10;
/** Fields of /proc/self/stat behind the name, as proc(5) numbers them from 3. */
const [UTIME, STIME, CUTIME, CSTIME] = [14 - 3, 15 - 3, 16 - 3, 17 - 3];

/** Several files may run one after the other in this process. */
const beforeMs = cpuMs();

// oxlint-disable-next-line no-empty-pattern -- the runner reads from this parameter which fixtures a hook wants
afterAll(({}, file) => {
  file.meta.figures = { cpuMs: cpuMs() - beforeMs };
});

function cpuMs(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  return [UTIME, STIME, CUTIME, CSTIME].reduce((sum, field) => sum + Number(fields[field]) * TICK_MS, 0);
}
