import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

const ROOT = path.resolve(import.meta.dirname, "../..");
const CONFIG = path.join(import.meta.dirname, "mcp-server.yaml");

const Listening = z.object({ message: z.literal("listening"), url: z.url() });

export interface ServerProcess {
  readonly origin: string;
  stop(): Promise<void>;
}

/** Starts the built server as a user would, on a free port, and waits until it says where it listens. */
export async function startServer(): Promise<ServerProcess> {
  const data = await mkdtemp(path.join(tmpdir(), "owlclaw-conformance-"));
  const child = spawn(
    process.execPath,
    [path.join(ROOT, "dist/main.js"), "mcp-server", "start", "--transport", "http", "--port", "0", "--config", CONFIG],
    { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, SANDBOX_ROOT: data } },
  );
  const origin = await listeningOrigin(child);
  return {
    origin,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
      await rm(data, { recursive: true, force: true });
    },
  };
}

async function listeningOrigin(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error("the server was started without a pipe for stderr");
  const seen: string[] = [];
  const lines = createInterface({ input: child.stderr });
  return new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      seen.push(line);
      const listening = Listening.safeParse(parseJson(line));
      if (listening.success) resolve(new URL(listening.data.url).origin);
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`the server ended with ${code} before it listened:\n${seen.join("\n")}`)),
    );
  });
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // A line that is no JSON is not the one that is waited for.
    return undefined;
  }
}
