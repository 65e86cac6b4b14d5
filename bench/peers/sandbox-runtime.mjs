// @anthropic-ai/sandbox-runtime as its documentation uses it as a library: set up once, then each command is wrapped and
// spawned. Each line on stdin is a command; each line on stdout says how many milliseconds it took.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { SandboxManager } from "@anthropic-ai/sandbox-runtime";

await SandboxManager.initialize({
  network: { allowedDomains: [], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: [tmpdir()], denyWrite: [] },
});
process.stdout.write("ready\n");

for await (const command of createInterface({ input: process.stdin })) {
  const startedAt = performance.now();
  const wrapped = await SandboxManager.wrapWithSandbox(command);
  const child = spawn(wrapped, { shell: true, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const [code] = await once(child, "close");
  const milliseconds = performance.now() - startedAt;
  SandboxManager.cleanupAfterCommand();
  process.stdout.write(`${code === 0 ? milliseconds : `exit code ${code}: ${said.trim()}`}\n`);
}
await SandboxManager.reset();
