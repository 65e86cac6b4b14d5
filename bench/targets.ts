import path from "node:path";
import { governedToken } from "./governed-token.ts";

/** How a client talks: the newest revision, the one before it with its handshake, plain JSON-RPC, or over pipes. */
export type Door = "http-2026" | "http-2025" | "http-plain" | "stdio";

export const DOORS: readonly Door[] = ["http-2026", "http-2025", "http-plain", "stdio"];

export interface Target {
  readonly name: string;
  readonly doors: readonly Door[];
  readonly args: readonly string[];
  /** Who does not send it is not let in. */
  readonly token?: string;
}

/** What the other servers are compared with: the official SDK as its own documentation serves it. */
export const BASELINE: Readonly<Record<Door, string>> = {
  "http-2026": "sdk-v2-handler",
  "http-2025": "sdk-v2-handler",
  "http-plain": "sdk-v2-handler",
  stdio: "sdk-v2-stdio",
};

/** Ours with pipeline and trace ids: as much as the others do, and the base that governance is measured from. */
export const UNGOVERNED: Readonly<Record<Door, string>> = {
  "http-2026": "owlclaw-ungoverned",
  "http-2025": "owlclaw-ungoverned",
  "http-plain": "owlclaw-ungoverned",
  // Over HTTP a process of its own for handlers is no matter; over pipes it would be what is measured.
  stdio: "owlclaw-inline-stdio",
};

export const GOVERNED = "owlclaw-governed";
export const STARTED = "owlclaw-stdio";

export const MAIN = path.join(import.meta.dirname, "../dist/main.js");
const CONFIG = path.join(import.meta.dirname, "mcp-server.yaml");
const INLINE_CONFIG = path.join(import.meta.dirname, "inline.yaml");
const GOVERNED_CONFIG = path.join(import.meta.dirname, "governed.yaml");
/** Where `buildAssembled` puts it. */
export const ASSEMBLED_BUILD: string = path.join(import.meta.dirname, "../.cache/bench/dist");
const HTTP_DOORS: readonly Door[] = ["http-2026", "http-2025", "http-plain"];

export const TARGETS: readonly Target[] = [
  { name: "raw", doors: HTTP_DOORS, args: peer("raw", "http") },
  { name: "sdk-v1-stateful", doors: ["http-2025"], args: peer("sdk-v1", "stateful") },
  { name: "sdk-v1-stateless", doors: ["http-2025", "http-plain"], args: peer("sdk-v1", "stateless") },
  { name: "sdk-v2-handler", doors: HTTP_DOORS, args: peer("sdk-v2", "handler") },
  { name: "sdk-v2-stateful", doors: ["http-2025"], args: peer("sdk-v2", "stateful") },
  { name: "fastmcp-stateful", doors: ["http-2025"], args: peer("fastmcp", "stateful") },
  { name: "fastmcp-stateless", doors: ["http-2025", "http-plain"], args: peer("fastmcp", "stateless") },
  { name: "owlclaw", doors: HTTP_DOORS, args: ours(CONFIG, "http") },
  { name: GOVERNED, doors: HTTP_DOORS, args: assembled("http", "governed", GOVERNED_CONFIG), token: governedToken() },
  { name: "owlclaw-ungoverned", doors: HTTP_DOORS, args: assembled("http", "ungoverned") },
  { name: "raw-stdio", doors: ["stdio"], args: peer("raw", "stdio") },
  { name: "sdk-v1-stdio", doors: ["stdio"], args: peer("sdk-v1", "stdio") },
  { name: "sdk-v2-stdio", doors: ["stdio"], args: peer("sdk-v2", "stdio") },
  { name: "fastmcp-stdio", doors: ["stdio"], args: peer("fastmcp", "stdio") },
  { name: "owlclaw-stdio", doors: ["stdio"], args: ours(CONFIG, "stdio") },
  { name: "owlclaw-ungoverned-stdio", doors: ["stdio"], args: assembled("stdio", "ungoverned") },
  { name: "owlclaw-inline-stdio", doors: ["stdio"], args: assembled("stdio", "ungoverned", INLINE_CONFIG) },
];

/** Peers are plain JavaScript, so that no loader stands between them and Node: ours is compiled too. */
function peer(file: string, mode: string): readonly string[] {
  return [path.join(import.meta.dirname, "peers", `${file}.mjs`), mode];
}

function ours(config: string, transport: "http" | "stdio"): readonly string[] {
  const port = transport === "http" ? ["--port", "0"] : [];
  return [MAIN, "mcp-server", "start", "--transport", transport, "--config", config, ...port];
}

function assembled(transport: "http" | "stdio", kind: "governed" | "ungoverned", config = CONFIG): readonly string[] {
  return [path.join(ASSEMBLED_BUILD, "owlclaw-assembled.js"), transport, config, kind];
}
