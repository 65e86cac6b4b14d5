import { text as readText } from "node:stream/consumers";
import type { ContentBlock, ToolResult } from "../capability/content.ts";
import { type CommandCall, UsageError } from "./command.ts";
import { jsonText, paint, withoutTerminalControls } from "./text.ts";
import { loadConfig } from "../config/load.ts";
import type { LocalServer } from "../server/local-client.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";

export async function toolsCallCommand(call: CommandCall): Promise<number> {
  const { terminal, args, flags } = call;
  const [name = "", json = "{}"] = args;
  const input = parseArguments(json === "-" ? await readText(process.stdin) : json);
  const abort = new AbortController();
  const interrupt = (): void => abort.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt);
  try {
    const result = await withLocalServer(call, (server) => server.callTool(name, input, { signal: abort.signal }));
    if (flags["json"] === true) terminal.out(jsonText(result));
    else terminal.out(renderResult(result, terminal.outIsTty));
    if (result.isError === true) terminal.err(`${paint("The tool failed.", "red", terminal.errColor)}\n`);
    return result.isError === true ? 1 : 0;
  } finally {
    process.off("SIGINT", interrupt);
  }
}

function parseArguments(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      `the arguments are not valid JSON: ${reason}. Quote them for your shell, as in '{"name": "Ada"}'`,
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`the arguments must be a JSON object, as in '{"name": "Ada"}'`);
  }
  return Object.fromEntries(Object.entries(value));
}

function renderResult({ content, structuredContent }: ToolResult, isTty: boolean): string {
  const blocks = content.map(renderBlock);
  if (blocks.length === 0 && structuredContent !== undefined) blocks.push(JSON.stringify(structuredContent, null, 2));
  const text = blocks.map((block) => (block.endsWith("\n") ? block : `${block}\n`)).join("");
  // A pipe or a file gets the text unchanged. On a terminal control characters are replaced.
  return isTty ? withoutTerminalControls(text) : text;
}

function renderBlock(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type} ${block.mimeType}, ${Buffer.byteLength(block.data, "base64")} bytes; --json shows it]`;
    case "resource_link":
      return `[link ${block.uri} ${block.name}]`;
    case "resource":
      return "text" in block.resource
        ? block.resource.text
        : `[resource ${block.resource.uri}, binary; --json shows it]`;
  }
}

/** Opens the capabilities of the server without a transport, for the duration of `use`. */
export async function withLocalServer<T>(
  { terminal, flags }: CommandCall,
  use: (server: LocalServer) => Promise<T>,
): Promise<T> {
  const loaded = await loadConfig(toLoadOptions(flags));
  const { openLocal } = await import("../server/local-client.ts");
  const server = await openLocal({ loaded, logger: quietLogger(loaded, terminal) });
  try {
    return await use(server);
  } finally {
    await server.close();
  }
}

export async function toolsListCommand(call: CommandCall): Promise<number> {
  const { terminal, flags } = call;
  if (flags["json"] === true) {
    const tools = await withLocalServer(call, (server) => server.wireTools());
    terminal.out(jsonText({ tools }));
    return 0;
  }
  const tools = await withLocalServer(call, (server) => server.listTools());
  if (tools.length === 0) {
    terminal.err("There are no tools yet. Name your handlers with --handlers or handlers.paths.\n");
    return 0;
  }
  const rows = tools.map(({ name, version, scope, description }) => [name, version, scope ?? "", description]);
  const { width, outColor: color } = terminal;
  terminal.out(renderTable({ columns: ["NAME", "VERSION", "SCOPE", "DESCRIPTION"], rows, width, color }));
  return 0;
}

export async function resourcesListCommand(call: CommandCall): Promise<number> {
  const { terminal, flags } = call;
  const resources = await withLocalServer(call, (server) => server.listResources());
  if (flags["json"] === true) {
    terminal.out(jsonText({ resources }));
    return 0;
  }
  if (resources.length === 0) {
    terminal.err("There are no resources yet. Name the files that define them with --handlers or handlers.paths.\n");
    return 0;
  }
  const rows = resources.map(({ uri, name, mimeType, description }) => [uri, name, mimeType ?? "", description ?? ""]);
  const { width, outColor: color } = terminal;
  terminal.out(renderTable({ columns: ["URI", "NAME", "TYPE", "DESCRIPTION"], rows, width, color }));
  return 0;
}
