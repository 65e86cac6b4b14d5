import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { stringify } from "yaml";
import { z } from "zod";
import { mintToken } from "../../src/auth/mint-token.ts";
import { writePastCalls } from "./past-calls.ts";

const ROOT = join(import.meta.dirname, "../..");
const created = z.object({ session_id: z.string() });
const SECRET = "pictures are made with this secret alone";

const CONFIG = {
  transport: "http",
  http: { host: "127.0.0.1", port: 0 },
  auth: { enabled: true, jwt: { secret: SECRET } },
  handlers: { paths: [join(ROOT, "examples/shop/handlers/*.ts")] },
  skills: { dir: join(ROOT, "examples/shop/skills") },
  governance: {
    clients: { "research-agent": { monthlyBudget: 0.13 }, "ci-runner": { monthlyBudget: 5, callsPerDay: 12 } },
    tools: {
      code_run: { cost: { fixed: 0.05 } },
      shell_exec: { cost: { fixed: 0.01 } },
      file_write: { confirm: "operator" },
    },
    rules: [
      {
        id: "no-rm",
        when: 'tool == "shell_exec" && args.command.contains("rm -rf")',
        effect: "deny",
        reason: "use file tools",
      },
    ],
  },
};

const SHELL = `printf 'name: checkout\\nreplicas: 2\\nimage: checkout:1.4\\nport: 8080\\n' > deploy.yaml
printf '%s' '<title>Checkout</title><style>body{font:16px sans-serif;margin:40px}td{padding:6px 30px 6px 0}</style><h1>Your basket</h1><table><tr><td>Lamp<td>24.50<tr><td>Desk<td>189.00<tr><td>Chair<td>98.00</table><p><button>Pay 311.50</button>' > shop.html
printf 'def total(items):\\n    return sum(items)\\n' > cart.py
printf 'test_total \\033[32mpassed\\033[0m\\ntest_empty \\033[32mpassed\\033[0m\\ntest_discount \\033[31mfailed\\033[0m\\n'
echo '2 passed, 1 failed' >&2`;

const CODE = `import statistics
prices = [19.9, 24.5, 22.0, 31.2, 28.4]
print("mean", round(statistics.mean(prices), 2))
print("spread", round(statistics.stdev(prices), 2))
sorted(prices)`;

const PLOT = `import matplotlib.pyplot as plt
plt.figure(figsize=(6, 2.4))
plt.bar(["Mon", "Tue", "Wed", "Thu", "Fri"], prices, color="#2b8a8a")
plt.title("Price by day")
plt.show()`;

/** A real server with real sandboxes and clients that are at work. Whoever starts it stops it. */
export class LivelyServer {
  readonly origin: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #clients: Client[] = [];
  readonly #running: Promise<unknown>[] = [];

  private constructor(origin: string, child: ChildProcess, folder: string) {
    this.origin = origin;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(): Promise<LivelyServer> {
    const folder = await mkdtemp(join(tmpdir(), "owlclaw-pictures-"));
    const data = join(folder, "data");
    await writePastCalls(data);
    const file = join(folder, "mcp-server.yaml");
    await writeFile(file, stringify({ ...CONFIG, sandbox: { root: data, pool: { size: 2 } } }));
    const child = spawn(process.execPath, [join(ROOT, "dist/main.js"), "mcp-server", "start", "--config", file], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const server = new LivelyServer(await listening(child), child, folder);
    await server.#live();
    return server;
  }

  token(subject: string, scopes: readonly string[] = []): Promise<string> {
    return mintToken({ secret: SECRET, subject, scopes, expiresInSeconds: 900 });
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) await client.close();
    await Promise.allSettled(this.#running);
    this.#child.kill("SIGTERM");
    await once(this.#child, "exit");
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Work that is done, work that goes on, and a call that waits for a decision. */
  async #live(): Promise<void> {
    const research = await this.#client("research-agent");
    const first = await newSandbox(research);
    await call(research, "shell_exec", { session_id: first, command: SHELL });
    await call(research, "code_run", { session_id: first, code: CODE });
    await call(research, "code_run", { session_id: first, code: PLOT });
    await call(research, "shell_exec", { session_id: first, command: "rm -rf /workspace" });
    await call(research, "browser_goto", { session_id: first, url: "file:///workspace/shop.html" });
    const ci = await this.#client("ci-runner");
    for (const template of ["node", "python", "node"]) {
      const id = await newSandbox(ci, template);
      await call(ci, "shell_exec", { session_id: id, command: "git --version" });
    }
    const support = await this.#client("support-bot");
    const busy = await newSandbox(support);
    this.#running.push(call(support, "shell_exec", { session_id: busy, command: "sleep 100", timeout_seconds: 110 }));
    const content = "name: checkout\nreplicas: 20\nimage: checkout:1.5\nport: 8080\n";
    this.#running.push(call(research, "file_write", { session_id: first, path: "deploy.yaml", content }));
  }

  async #client(name: string): Promise<Client> {
    const client = new Client({ name, version: "1" });
    const headers = { authorization: `Bearer ${await this.token(name)}` };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${this.origin}/mcp`), { requestInit: { headers } }),
    );
    this.#clients.push(client);
    return client;
  }
}

async function newSandbox(client: Client, template = "python"): Promise<string> {
  const { structuredContent } = await client.callTool({ name: "sandbox_create", arguments: { template } });
  return created.parse(structuredContent).session_id;
}

/** Refusals are part of life. */
async function call(client: Client, name: string, args: Record<string, unknown>): Promise<void> {
  await client.callTool({ name, arguments: args }).catch(() => undefined);
}

async function listening(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error("the server needs a pipe for stderr");
  const lines = createInterface({ input: child.stderr });
  for await (const line of lines) {
    const address = /"url":"(http:[^"]+)"/.exec(line)?.[1] ?? /(http:\/\/127\.0\.0\.1:\d+\/mcp)/.exec(line)?.[1];
    if (address !== undefined) {
      child.stderr.resume();
      return new URL(address).origin;
    }
  }
  throw new Error("the server ended before it listened");
}
