import { readdirSync } from "node:fs";
import type { Generator } from "./generator.ts";

/** At the bottom: any folder may import these. `principal` stands for `auth/principal.ts` alone. */
const BOTTOM = ["errors", "config", "telemetry", "processes", "collections", "principal"];

/** "Imports go one way" of the architecture: what each folder of `src/` may import beside itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  config: ["errors"],
  telemetry: ["errors", "config"],
  processes: [],
  collections: [],
  redis: BOTTOM,
  postgres: BOTTOM,
  cluster: [...BOTTOM, "redis", "postgres"],
  auth: BOTTOM,
  network: BOTTOM,
  runtimes: BOTTOM,
  sandbox: [...BOTTOM, "runtimes", "network"],
  capabilities: BOTTOM,
  tools: [...BOTTOM, "capabilities", "sandbox"],
  watching: BOTTOM,
  handlers: [...BOTTOM, "capabilities", "sandbox", "watching"],
  skills: [...BOTTOM, "capabilities", "sandbox", "watching"],
  ledger: [...BOTTOM, "postgres"],
  governance: [...BOTTOM, "redis", "postgres", "ledger"],
  pipeline: [...BOTTOM, "governance", "ledger", "capabilities"],
  protocol: [...BOTTOM, "pipeline", "governance", "ledger", "capabilities"],
  dashboard: [...BOTTOM, "protocol", "pipeline", "governance", "ledger", "capabilities", "sandbox"],
  transports: [
    ...BOTTOM,
    "auth",
    "cluster",
    "dashboard",
    "protocol",
    "pipeline",
    "governance",
    "ledger",
    "capabilities",
  ],
};

/** `server` wires everything, `cli` starts it; only these two are above the rest. */
const FOLDERS = [...Object.keys(MAY_IMPORT), "server", "cli"];
const MAY_USE_SDK = ["protocol", "transports", "server", "cli"];
const OUTSIDE_SRC = ["test", "scripts", "bench", "guest", "web"];

interface Pattern {
  readonly regex?: string;
  readonly group?: readonly string[];
  readonly message: string;
}

export const importBoundaries: Generator = (root) => {
  const unknown = sourceFolders(root).filter((folder) => !FOLDERS.includes(folder));
  if (unknown.length > 0) {
    throw new Error(`src/${unknown.join(", src/")}: say in scripts/generators/import-boundaries.ts what it may import`);
  }
  const overrides = FOLDERS.flatMap((folder) => [
    override({ folder, files: `src/${folder}/*.ts`, ups: String.raw`\.\./`, depths: [1] }),
    override({ folder, files: `src/${folder}/*/**/*.ts`, ups: String.raw`(\.\./){2,}`, depths: [2, 3, 4] }),
  ]);
  return new Map([[".oxlint-boundaries.json", `${JSON.stringify({ overrides }, null, 2)}\n`]]);
};

function sourceFolders(root: string): string[] {
  return readdirSync(`${root}/src`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}

/** Two rules per folder, by depth: `../sandbox/` means another thing in `src/cli/` than in `src/tools/code/`. */
function override(options: { folder: string; files: string; ups: string; depths: readonly number[] }) {
  const { folder, files, ups, depths } = options;
  const allowed =
    folder === "cli"
      ? FOLDERS
      : folder === "server"
        ? FOLDERS.filter((name) => name !== "cli")
        : (MAY_IMPORT[folder] ?? []);
  const forbidden = FOLDERS.filter((name) => name !== folder && !allowed.includes(name));
  const message = `src/${folder} may import: ${allowed.length > 0 ? allowed.join(", ") : "nothing of src"}. See docs/architecture.md.`;
  const principalOnly = forbidden.includes("auth") && allowed.includes("principal");
  const names = forbidden.filter((name) => !(principalOnly && name === "auth"));
  const patterns: Pattern[] = [
    {
      regex: `^${ups}(main|index)\\.ts$`,
      message: "Nothing imports the bin or the public API: import the file itself.",
    },
    {
      regex: `^(\\.\\./)+(${OUTSIDE_SRC.join("|")})/`,
      message: "src/ stands alone: it imports nothing outside itself.",
    },
  ];
  if (names.length > 0) patterns.push({ regex: `^${ups}(${names.join("|")})/`, message });
  if (principalOnly) patterns.push({ group: depths.flatMap(principalGroup), message });
  if (!MAY_USE_SDK.includes(folder)) {
    patterns.push({
      regex: "^@modelcontextprotocol/",
      message: `src/${folder} knows nothing of MCP: src/protocol does.`,
    });
  }
  return { files: [files], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

function principalGroup(depth: number): string[] {
  const up = "../".repeat(depth);
  return [`${up}auth/*`, `!${up}auth/principal.ts`];
}
