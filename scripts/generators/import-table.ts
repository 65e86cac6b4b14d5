import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import type { Generator } from "./generator.ts";
import { toTable } from "./markdown-table.ts";

/** A folder of `src/` with rules of its own. Files belong to the longest name that fits: `sandbox/network` before `sandbox`. */
interface Folder {
  readonly what: string;
  /** `all`: every folder but those that also have `all`. */
  readonly imports: readonly string[] | "all";
  readonly mcpSdk?: true;
}

/** Every folder below may import these. `auth/principal.ts` is the one file of `auth` that every folder may import. */
const BASE = ["config", "errors", "platform", "telemetry"];
const EVERYWHERE = ["auth/principal.ts"];

export const FOLDERS: Readonly<Record<string, Folder>> = {
  cli: { what: "one file per command", imports: "all", mcpSdk: true },
  server: { what: "composition: start order, stop order, reload", imports: "all", mcpSdk: true },
  transport: {
    what: "HTTP, stdio and the older SSE: listeners, guards, sessions, TLS",
    imports: ["auth", "call", "capability", "cluster", "governance", "governance/ledger", "mcp", "operator"],
    mcpSdk: true,
  },
  cluster: {
    what: "several servers: which one owns a session, task or sandbox; forwarding to it",
    imports: ["call", "capability", "mcp", "sandbox", "tools"],
  },
  operator: {
    what: "what operators see and do; the contract with the dashboard's page",
    imports: ["call", "capability", "governance", "governance/ledger", "mcp", "sandbox", "sandbox/network"],
  },
  mcp: {
    what: "JSON-RPC, revisions, the request server, methods, questions to the client, errors to the wire",
    imports: ["call", "capability", "governance", "governance/ledger"],
    mcpSdk: true,
  },
  call: { what: "the stages of a call", imports: ["capability", "governance", "governance/ledger"] },
  governance: { what: "policy, limits, budgets, approvals, pauses", imports: ["governance/ledger"] },
  "governance/ledger": { what: "the record of every call: rows, hash chain, stores", imports: [] },
  tools: { what: "the built-in tools and the dialects", imports: ["capability", "sandbox"] },
  handlers: { what: "functions of users: types to schemas, workers, Python", imports: ["capability", "sandbox"] },
  skills: { what: "SKILL.md: scan, load, search, read", imports: ["capability", "sandbox"] },
  capability: { what: "definitions of tools, resources and prompts; schemas; the registry", imports: [] },
  sandbox: {
    what: "sandboxes and their lives: pool, limits, the client of the guest",
    imports: ["sandbox/network", "sandbox/runtimes"],
  },
  "sandbox/network": { what: "the egress proxy", imports: [] },
  "sandbox/runtimes": { what: "isolated instances: bubblewrap, Docker, microsandbox", imports: [] },
  auth: { what: "bearer tokens and API keys to principals", imports: [] },
  telemetry: { what: "log, redaction, metrics, traces, health, alerts", imports: ["config", "errors"] },
  config: { what: "the one schema, its layers; the only reader of the environment", imports: ["errors"] },
  platform: {
    what: "small parts on Node and Linux: watched files, process identity, database connections",
    imports: ["config", "errors", "telemetry"],
  },
  errors: { what: "the registry of error kinds", imports: [] },
};

/** The base itself: each folder imports only what its line names. */
const WITHOUT_BASE = BASE;
const IMPORT = /(?:\bfrom|\bimport\(|^import)\s*["']([^"']+)["']/gm;

/** Checks the imports of `src/` against the table, and writes the table into docs/architecture.md. */
export const importTable: Generator = (root) => {
  const broken = sourceFiles(root).flatMap((file) =>
    importsOf(readFileSync(`${root}/${file}`, "utf8")).flatMap((specifier) => refusal(file, specifier) ?? []),
  );
  if (broken.length > 0) {
    throw new Error(`imports against the table in scripts/generators/import-table.ts:\n  ${broken.join("\n  ")}`);
  }
  const page = "docs/architecture.md";
  const text = readFileSync(`${root}/${page}`, "utf8");
  const [begin, end] = ["<!-- import table: npm run generate -->\n", "<!-- end of the import table -->"];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the marks of the import table`);
  return new Map([[page, `${text.slice(0, from + begin.length)}\n${table()}\n${text.slice(to)}`]]);
};

/** Why `file` may not import `specifier`; `undefined` when it may. */
export function refusal(file: string, specifier: string): string | undefined {
  const folder = folderOf(file);
  if (folder === undefined) return undefined;
  const rules = FOLDERS[folder];
  if (rules === undefined) return `${file}: src/${folder} has no line in the table`;
  if (specifier.startsWith(".")) return refusedPath(file, folder, specifier);
  if (!specifier.startsWith("@modelcontextprotocol/") || rules.mcpSdk === true) return undefined;
  return `${file}: only src/mcp, src/transport, src/server and src/cli import the MCP SDK`;
}

function refusedPath(file: string, folder: string, specifier: string): string | undefined {
  const target = posix.join(posix.dirname(file), specifier);
  if (target.startsWith("contract/")) return undefined;
  if (!target.startsWith("src/")) return `${file}: src imports nothing outside src and contract: ${specifier}`;
  if (/^src\/(main|index)\.ts$/.test(target)) return `${file}: import the file itself, not ${specifier}`;
  if (EVERYWHERE.includes(target.slice("src/".length)) && !["errors", "config"].includes(folder)) return undefined;
  const other = folderOf(target) ?? "";
  if (other === folder || allowed(folder).includes(other)) return undefined;
  return `${file}: src/${folder} may not import src/${other} (${specifier})`;
}

function allowed(folder: string): readonly string[] {
  const imports = FOLDERS[folder]?.imports ?? [];
  if (imports === "all") return Object.keys(FOLDERS).filter((name) => name !== "cli");
  return WITHOUT_BASE.includes(folder) ? imports : [...imports, ...BASE];
}

function folderOf(file: string): string | undefined {
  const [src, first, second] = file.split("/");
  if (src !== "src" || second === undefined) return undefined;
  const nested = `${first}/${second}`;
  return nested in FOLDERS ? nested : first;
}

function importsOf(text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, specifier = ""]) => specifier);
}

function sourceFiles(root: string): string[] {
  return readdirSync(`${root}/src`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `src/${name.replaceAll("\\", "/")}`)
    .toSorted();
}

function table(): string {
  const rows = Object.entries(FOLDERS).map(([name, { what, imports }]) => {
    const names = imports === "all" ? ["everything below"] : imports.map((folder) => `\`${folder}\``);
    const base = imports === "all" || WITHOUT_BASE.includes(name) ? [] : ["the base"];
    return [`\`src/${name}\``, what, [...names, ...base].join(", ") || "nothing"];
  });
  return `The base is ${BASE.map((name) => `\`${name}\``).join(", ")} and the file \`auth/principal.ts\`. Every folder may import \`contract\`, which imports nothing but zod.\n\n${toTable(
    ["folder", "what", "imports"],
    rows,
  )}`;
}
