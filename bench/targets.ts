import path from "node:path";

/** How a client talks: the newest revision, the one before it with its handshake, plain JSON-RPC, or over pipes. */
export type Door = "http-2026" | "http-2025" | "http-plain" | "stdio";

export const DOORS: readonly Door[] = ["http-2026", "http-2025", "http-plain", "stdio"];

export interface Target {
  readonly name: string;
  readonly doors: readonly Door[];
  readonly args: readonly string[];
}

/** What the other servers are compared with: the official SDK as its own documentation serves it. */
export const BASELINE: Readonly<Record<Door, string>> = {
  "http-2026": "sdk-v2-handler",
  "http-2025": "sdk-v2-handler",
  "http-plain": "sdk-v2-handler",
  stdio: "sdk-v2-stdio",
};

export const OURS: Readonly<Record<Door, string>> = {
  "http-2026": "owlclaw",
  "http-2025": "owlclaw",
  "http-plain": "owlclaw",
  stdio: "owlclaw-stdio",
};

export const MAIN = path.join(import.meta.dirname, "../dist/main.js");
const CONFIG = path.join(import.meta.dirname, "mcp-server.yaml");
const HTTP_DOORS: readonly Door[] = ["http-2026", "http-2025", "http-plain"];

export const TARGETS: readonly Target[] = [
  { name: "raw", doors: HTTP_DOORS, args: peer("raw", "http") },
  { name: "sdk-v1-stateful", doors: ["http-2025"], args: peer("sdk-v1", "stateful") },
  { name: "sdk-v1-stateless", doors: ["http-2025", "http-plain"], args: peer("sdk-v1", "stateless") },
  { name: "sdk-v2-handler", doors: HTTP_DOORS, args: peer("sdk-v2", "handler") },
  { name: "sdk-v2-stateful", doors: ["http-2025"], args: peer("sdk-v2", "stateful") },
  { name: "fastmcp-stateful", doors: ["http-2025"], args: peer("fastmcp", "stateful") },
  { name: "fastmcp-stateless", doors: ["http-2025", "http-plain"], args: peer("fastmcp", "stateless") },
  { name: "owlclaw", doors: HTTP_DOORS, args: ours("http", "--port", "0") },
  { name: "owlclaw-ungoverned", doors: HTTP_DOORS, args: peer("owlclaw-ungoverned", "http") },
  { name: "raw-stdio", doors: ["stdio"], args: peer("raw", "stdio") },
  { name: "sdk-v1-stdio", doors: ["stdio"], args: peer("sdk-v1", "stdio") },
  { name: "sdk-v2-stdio", doors: ["stdio"], args: peer("sdk-v2", "stdio") },
  { name: "fastmcp-stdio", doors: ["stdio"], args: peer("fastmcp", "stdio") },
  { name: "owlclaw-stdio", doors: ["stdio"], args: ours("stdio") },
];

/** Peers are plain JavaScript, so that no loader stands between them and Node: ours is compiled too. */
function peer(file: string, mode: string): readonly string[] {
  return [path.join(import.meta.dirname, "peers", `${file}.mjs`), mode];
}

function ours(transport: string, ...more: readonly string[]): readonly string[] {
  return [MAIN, "mcp-server", "start", "--transport", transport, "--config", CONFIG, ...more];
}
