import { spawn } from "node:child_process";
import { once } from "node:events";

/** What a program wrote, without the last line's end; throws with its last words when it fails. */
export async function runProgram(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let written = "";
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (written += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args[0] ?? ""} ended with ${String(code)}: ${lastLine(said)}`);
  return written.trim();
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
