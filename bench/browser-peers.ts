import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { chromium, type Browser, type Page } from "playwright-core";
import { z } from "zod";
import { SITE } from "./browser-site.ts";
import { MAIN } from "./targets.ts";

export const CHROMIUM = "/usr/lib/chromium/chromium";

/** One way to have a browser; all are asked the same, by turns. */
export interface BrowserPeer {
  readonly name: string;
  /** The first one starts the browser. */
  goto(page: string): Promise<void>;
  /** What a model is given to read. */
  snapshot(): Promise<string>;
  stop(): Promise<void>;
}

const resultSchema = z.object({
  isError: z.boolean().optional(),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  content: z.array(z.object({ type: z.string(), text: z.string().optional() })),
});

/** What a tool says; a failure ends the run. */
async function ask(client: Client, name: string, args: Record<string, unknown>): Promise<z.infer<typeof resultSchema>> {
  const result = resultSchema.parse(await client.callTool({ name, arguments: args }));
  if (result.isError === true) throw new Error(`${name}: ${result.content[0]?.text?.slice(0, 500)}`);
  return result;
}

async function connect(args: readonly string[], cwd: string): Promise<Client> {
  const client = new Client({ name: "bench", version: "1" });
  const env = { PATH: process.env["PATH"] ?? "", HOME: cwd, TMPDIR: cwd };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [...args], env, cwd, stderr: "ignore" }),
  );
  return client;
}

/** Our own: the browser is in a sandbox, and so is the site. */
export async function startOwlClaw(): Promise<BrowserPeer> {
  const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-"));
  const config = path.join(folder, "mcp-server.yaml");
  const sandbox = {
    root: path.join(folder, "data"),
    flavor: "medium",
    pool: { size: 0 },
    volumes: [`${SITE}:/site:ro`],
  };
  const governance = { defaults: { callsPerMinute: 1_000_000, concurrency: 1000 } };
  await writeFile(config, JSON.stringify({ sandbox, governance, tools: { maxResultChars: 5_000_000 } }));
  const client = await connect([MAIN, "mcp-server", "start", "--config", config], folder);
  await ask(client, "shell_exec", { command: "exec node /site/server.mjs", background: true });
  await ask(client, "shell_exec", { command: "until curl -s -o /dev/null localhost:8000; do sleep 0.05; done" });
  return {
    name: "owlclaw",
    goto: async (page) => void (await ask(client, "browser_goto", { url: `http://127.0.0.1:8000${page}` })),
    snapshot: async () => (await ask(client, "browser_snapshot", { max_text_len: 1_000_000 })).content[0]?.text ?? "",
    stop: async () => {
      await client.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Microsoft's server, without isolation. */
export async function startPlaywrightMcp(origin: string): Promise<BrowserPeer> {
  const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-"));
  const cli = path.join(import.meta.dirname, "node_modules/@playwright/mcp/cli.js");
  const flags = ["--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM, "--output-dir", folder];
  const client = await connect([cli, ...flags], folder);
  return {
    name: "@playwright/mcp",
    goto: async (page) => void (await ask(client, "browser_navigate", { url: `${origin}${page}` })),
    snapshot: async () => (await ask(client, "browser_snapshot", {})).content.map(({ text = "" }) => text).join("\n"),
    stop: async () => {
      await client.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The library alone, in this very process: no server, no protocol, no isolation. */
export function preparePlaywright(origin: string): BrowserPeer & { truth(): Promise<PageTruth> } {
  let browser: Browser | undefined;
  let page: Page | undefined;
  const opened = async (): Promise<Page> => {
    browser ??= await chromium.launch({ executablePath: CHROMIUM, chromiumSandbox: false });
    page ??= await browser.newPage();
    return page;
  };
  return {
    name: "playwright",
    goto: async (path) => void (await (await opened()).goto(`${origin}${path}`)),
    snapshot: async () => await (await opened()).ariaSnapshot({ mode: "ai" }),
    truth: async () => truthSchema.parse(await (await opened()).evaluate(TRUTH)),
    stop: async () => await browser?.close(),
  };
}

const truthSchema = z.object({ texts: z.array(z.string()), widgets: z.array(z.string()) });
export type PageTruth = z.infer<typeof truthSchema>;

/** Asked of the page itself: every text that it shows, and the name of everything that can be used. */
const TRUTH = `({
  texts: [...document.querySelectorAll("h1, th, td")].map((cell) => cell.innerText.trim()).filter(Boolean),
  widgets: [...document.querySelectorAll("a[href], button, input, select, textarea")].map((one) => one.innerText.trim()),
})`;
