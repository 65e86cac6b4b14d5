import { effectiveValues, renderSampleYaml, configJsonSchema } from "../config/render-config.ts";
import { loadConfig, CONFIG_FILE_NAME, type LoadedConfig } from "../config/load.ts";
import { type CommandCall, EXIT } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import { jsonText, paint, withoutTerminalControls } from "./text.ts";
import { writeFile } from "node:fs/promises";
import { TrustedFiles } from "../config/trusted-files.ts";
import { userEnvironment } from "../config/environment.ts";
import type { Terminal } from "./terminal.ts";
import { Changes, Registry } from "../capability/registry.ts";
import type { HandlerProblem } from "../handlers/handler-description.ts";
import { SILENT_LOGGER } from "../telemetry/logger.ts";
import { serveCapabilities } from "../server/serve-capabilities.ts";

export async function configShowCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadConfig({ ...toLoadOptions(flags), acceptsUntrusted: true });
  if (!loaded.isTrusted) terminal.err(untrustedNote(loaded));
  const values = effectiveValues(loaded);
  if (flags["json"] === true) {
    const rows = values.map(({ path, value, layer, source }) => ({ path, value, layer, source }));
    terminal.out(jsonText({ file: loaded.file ?? null, values: rows }));
    return 0;
  }
  const { width, outColor: color } = terminal;
  const rows = values.map(({ path, text, source }) => [path, source, text]);
  terminal.out(renderTable({ columns: ["KEY", "FROM", "VALUE"], rows, width, color }));
  return 0;
}

export async function configInitCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const text = renderSampleYaml();
  if (flags["stdout"] === true) {
    terminal.out(text);
    return 0;
  }
  const [file = CONFIG_FILE_NAME] = args;
  try {
    // The file may later contain a secret, so only its owner may read it. Flag "wx" fails atomically when the file
    // exists.
    await writeFile(file, text, { flag: flags["force"] === true ? "w" : "wx", mode: 0o600 });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") {
      throw new Error(`${file} is there already. Use --force to replace it, or name another file.`, { cause: error });
    }
    throw error;
  }
  // The user requested exactly this text, so it is trusted. A changed file must be trusted again.
  new TrustedFiles(userEnvironment().env).trust(file, text);
  terminal.err(`Wrote ${file}. Check it with: owlclaw mcp-server config validate --config ${file}\n`);
  return 0;
}

export async function configSchemaCommand({ terminal }: CommandCall): Promise<number> {
  terminal.out(jsonText(configJsonSchema()));
  return 0;
}

export async function configValidateCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadConfig({ ...toLoadOptions(flags), acceptsUntrusted: true });
  const { config, file } = loaded;
  const subject =
    file ?? "No config file was found: the defaults, the environment and the flags are in force. The configuration";
  terminal.out(`${subject} is ${paint("valid", "green", terminal.outColor)}.\n`);
  // Checking handlers runs their code, so an untrusted configuration must not trigger it.
  const { isTrusted } = loaded;
  if (!isTrusted) terminal.err(untrustedNote(loaded));
  const codes = [
    config.skills.dir === "" ? EXIT.ok : await checkSkills(terminal, config.skills.dir),
    config.handlers.paths.length === 0 || !isTrusted ? EXIT.ok : await checkHandlerFiles(terminal, loaded),
  ];
  return codes.find((code) => code !== EXIT.ok) ?? EXIT.ok;
}

/** Prints each problem as `orders.ts:14:29: error: …; …`, the format that `checkSkills` uses too. */
async function checkHandlerFiles(terminal: Terminal, loaded: LoadedConfig): Promise<number> {
  const problems = await checkHandlers(loaded);
  for (const { file, line, column, message, fix } of problems) {
    const place = [file, line, line === undefined ? undefined : column].filter((part) => part !== undefined).join(":");
    const text = withoutTerminalControls(`${place}: error: ${message}${fix === undefined ? "" : `; ${fix}`}`);
    terminal.err(`${paint(text, "red", terminal.errColor)}\n`);
  }
  if (problems.length === 0) return EXIT.ok;
  terminal.err(`${problems.length} of the problems above keep handlers from being served.\n`);
  return EXIT.failure;
}

async function checkSkills(terminal: Terminal, dir: string): Promise<number> {
  const { printProblems, readSkills } = await import("./skills.ts");
  const { problems } = await readSkills(dir);
  printProblems(terminal, problems);
  const errors = problems.filter(({ severity }) => severity === "error").length;
  if (errors === 0) return EXIT.ok;
  terminal.err(`${errors} of the problems above keep skills or files in ${dir} from being served.\n`);
  return EXIT.failure;
}

/** A note for commands that show or check a config file which was found and is not trusted. */
export function untrustedNote({ file, config }: LoadedConfig): string {
  const handlers = config.handlers.paths.length > 0 ? " Handlers were not loaded." : "";
  return `${file} is not trusted: start refuses it until you have read it and run \`owlclaw mcp-server trust\`.${handlers}\n`;
}

/**
 * Loads every handler as the server does, together with the built-in tools, and returns the problems that keep handlers
 * from being served.
 */
export async function checkHandlers({
  config,
  volumes,
}: Pick<LoadedConfig, "config" | "volumes">): Promise<readonly HandlerProblem[]> {
  const capabilities = await serveCapabilities({
    config,
    volumes,
    logger: SILENT_LOGGER,
    registry: new Registry(),
    changes: new Changes(),
    withPool: false,
    loadsEveryHandler: true,
  });
  try {
    return capabilities.handlerProblems;
  } finally {
    await capabilities.stopWatching();
    await capabilities.close();
  }
}
