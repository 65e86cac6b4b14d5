import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";

export const SITE = path.resolve(import.meta.dirname, "../test/fixtures/browser-site");

/** The pages of the tests, on this machine's loopback: sandboxes serve the same ones to themselves. */
export async function startSite(): Promise<{ readonly origin: string; stop(): void }> {
  const child = spawn(process.execPath, [path.join(SITE, "server.mjs"), "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const port = /ready (\d+)/.exec(String(line))?.[1];
  return { origin: `http://127.0.0.1:${port}`, stop: () => void child.kill("SIGKILL") };
}
