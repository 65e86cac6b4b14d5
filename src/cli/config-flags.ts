import { Option, type Command } from "commander";
import { findKey } from "../config/keys.ts";
import type { LoadOptions } from "../config/load.ts";
import type { FlagSetting } from "../config/text-layers.ts";
import { UsageError } from "./command.ts";

/** A flag that sets one key. Its help text is the description of the key. */
interface KeyFlag {
  readonly flag: string;
  readonly path: string;
}

const HANDLERS: KeyFlag = { flag: "--handlers <glob...>", path: "handlers.paths" };
const SKILLS: KeyFlag = { flag: "--skills <folder>", path: "skills.dir" };

const ALL: readonly KeyFlag[] = [
  { flag: "--transport <name>", path: "transport" },
  { flag: "--host <address>", path: "http.host" },
  { flag: "--port <number>", path: "http.port" },
  { flag: "--mode <name>", path: "mode" },
  HANDLERS,
  SKILLS,
  { flag: "--dialect <name...>", path: "tools.dialects" },
  { flag: "--cors-origin <origin...>", path: "http.cors.origins" },
  { flag: "--tls-cert <file>", path: "http.tls.certFile" },
  { flag: "--tls-key <file>", path: "http.tls.keyFile" },
  { flag: "--allow-unauthenticated", path: "http.allowUnauthenticated" },
  { flag: "--log-level <level>", path: "logging.level" },
  { flag: "--log-format <format>", path: "logging.format" },
];

const FLAGS: Readonly<Record<"all" | "common" | "skills", readonly KeyFlag[]>> = {
  all: ALL,
  common: [HANDLERS, SKILLS],
  skills: [SKILLS],
};

/** The values that commander passes to an action, by camel-cased flag name. */
export type FlagValues = Readonly<Record<string, unknown>>;

export function addConfigFlags(command: Command, which: keyof typeof FLAGS): Command {
  command.option(
    "--config <file>",
    "Config file. Default: $MCP_SERVER_CONFIG, or mcp-server.yaml in the working directory.",
  );
  command.option("--no-config", "Ignores the mcp-server.yaml of the working directory.");
  for (const keyFlag of FLAGS[which]) command.addOption(toOption(keyFlag));
  if (which === "all") {
    command.option("--dashboard [port]", "Serves the page for operators beside stdio, on a port of loopback.");
    command.option(
      "--mount <folder>",
      "Makes a folder of this machine the workspace of every sandbox. host:guest[:ro] mounts it elsewhere. Repeatable.",
      collect,
    );
  }
  return command.option(
    "--set <key=value>",
    "Sets any key of the configuration, as in --set tools.timeoutSeconds=60. Repeatable.",
    collect,
  );
}

export function toLoadOptions(values: FlagValues): LoadOptions {
  const flags = ALL.flatMap((keyFlag) => fromKeyFlag(keyFlag, values[toOption(keyFlag).attributeName()]));
  const { config, set, mount, dashboard } = values;
  const mounts = Array.isArray(mount) ? [{ path: "sandbox.volumes", name: "--mount", value: mount.map(String) }] : [];
  const settings = Array.isArray(set) ? set.map((text) => fromAssignment(String(text))) : [];
  return {
    flags: [...flags, ...dashboardFlags(dashboard), ...mounts, ...settings],
    ...(typeof config === "string" ? { file: config } : {}),
    ...(config === false ? { ignoresWorkingDirectory: true } : {}),
  };
}

function toOption({ flag, path }: KeyFlag): Option {
  const key = findKey(path);
  const option = new Option(flag, key === undefined ? "" : `${key.description}${defaultText(key.defaultValue)}`);
  // The config loader checks the value, because its message names the fix too. The choices here are only for help and
  // completion.
  if (key !== undefined && key.choices.length > 0) option.argChoices = [...key.choices];
  return option;
}

/** Only for the help text. A default passed to commander would look like a flag that the user wrote. */
function defaultText(value: unknown): string {
  return typeof value === "number" || (typeof value === "string" && value !== "") ? ` Default: ${value}.` : "";
}

function fromKeyFlag(keyFlag: KeyFlag, value: unknown): FlagSetting[] {
  const { path } = keyFlag;
  const name = toOption(keyFlag).long ?? keyFlag.flag;
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [{ path, name, value: typeof value === "string" ? value : "true" }];
  const setting = { path, name, value: value.map(String) };
  // An origin that is named by flag also enables CORS.
  return path === "http.cors.origins" ? [{ path: "http.cors.enabled", name, value: "true" }, setting] : [setting];
}

/** `--dashboard` enables the dashboard whatever the file says. A port alone would not enable it. */
function dashboardFlags(value: unknown): FlagSetting[] {
  if (value === undefined) return [];
  const name = "--dashboard";
  return [
    { path: "dashboard.enabled", name, value: "true" },
    { path: "dashboard.besideStdio", name, value: "true" },
    ...(typeof value === "string" ? [{ path: "dashboard.port", name, value }] : []),
  ];
}

function fromAssignment(text: string): FlagSetting {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError("--set wants key=value, as in --set http.port=9000");
  return { path: text.slice(0, at), name: "--set", value: text.slice(at + 1) };
}

function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
