import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

const NODE_22 = path.join(import.meta.dirname, `node_modules/node-linux-${process.arch}/bin/node`);
const PEER = path.join(import.meta.dirname, "peers/sandbox-runtime.mjs");

export interface SandboxRuntimePeer {
  /** Milliseconds of one command, from wrapping it to its end. */
  run(command: string): Promise<number>;
  stop(): Promise<void>;
}

/** `@anthropic-ai/sandbox-runtime` in a process of its own, since it needs a newer Node. Throws with what it lacks. */
export async function startSandboxRuntime(): Promise<SandboxRuntimePeer> {
  if (!existsSync(NODE_22)) throw new Error(`it needs Node 22, and there is none for ${process.arch}`);
  const child = spawn(NODE_22, [PEER], { stdio: "pipe" });
  const stopWithUs = (): void => void child.kill("SIGKILL");
  process.once("exit", stopWithUs);
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const line = await lines.next();
    if (line.done === true) throw new Error(lastLine(said));
    return line.value;
  };
  const run = async (command: string): Promise<number> => {
    child.stdin.write(`${command}\n`);
    const answer = await nextLine();
    const milliseconds = Number(answer);
    if (Number.isNaN(milliseconds)) throw new Error(answer);
    return milliseconds;
  };
  const stop = async (): Promise<void> => {
    process.off("exit", stopWithUs);
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.stdin.end();
    await once(child, "exit");
  };
  await nextLine();
  // Whether it can run a command here shows only with the first.
  await run("true").catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { run, stop };
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "it ended without a word";
}
