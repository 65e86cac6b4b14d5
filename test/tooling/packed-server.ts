import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface PackedServer {
  readonly child: ChildProcess;
  readonly url: string;
  log(): string;
}

/** A server from a package, over HTTP, with the Node of the caller's choice. */
export async function startPacked(options: {
  readonly node: string;
  readonly main: string;
  readonly config: string;
  readonly cwd: string;
}): Promise<PackedServer> {
  const { node, main, config, cwd } = options;
  const child = spawn(node, [main, "mcp-server", "start", "--transport", "http", "--config", config], {
    cwd,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lines: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      lines.push(line);
      const found = /"message":"listening","url":"([^"]+)"/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`the server ended:\n${lines.join("\n")}`)));
  });
  return { child, url, log: () => lines.join("\n") };
}
