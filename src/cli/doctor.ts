import { ConfigError } from "../config/config-error.ts";
import { type LoadedConfig, type LoadOptions, loadConfig } from "../config/load.ts";
import type { DoctorCheck, DoctorProbe } from "./doctor/check.ts";
import type { HostUse } from "./doctor/machine-probes.ts";
import { type CommandCall, EXIT } from "./command.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { jsonText, paint, type Style } from "./text.ts";

const STYLE: Readonly<Record<DoctorCheck["status"], Style>> = { ok: "green", warning: "yellow", failed: "red" };

/** Checks everything that a server needs on this machine. The last check starts a server and calls a tool. */
export async function doctorCommand({ terminal, flags }: CommandCall): Promise<number> {
  const options = toLoadOptions(flags);
  const { loaded, checks } = await checkConfig(options);
  const looks = await looksFor(loaded, options, terminal);
  for (const look of looks) checks.push(...(await lookAndRepair(look, flags["fix"] === true, terminal)));
  if (flags["json"] === true) terminal.out(jsonText(checks));
  else print(checks, terminal);
  return checks.some(({ status }) => status === "failed") ? EXIT.failure : EXIT.ok;
}

async function checkConfig(
  options: LoadOptions,
): Promise<{ readonly loaded: LoadedConfig | undefined; readonly checks: DoctorCheck[] }> {
  const named = { category: "configuration", name: "configuration" } as const;
  try {
    const loaded = await loadConfig(options);
    const message = loaded.file ?? "no config file; defaults, environment and flags are in force";
    return { loaded, checks: [{ ...named, status: "ok", message }] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const checks = error.issues.map(({ path, reason, fix, source }): DoctorCheck => {
      return { category: "configuration", name: path, status: "failed", message: `${reason} (${source})`, fix };
    });
    return { loaded: undefined, checks };
  }
}

/** Without a valid configuration only the machine is checked. */
async function looksFor(
  loaded: LoadedConfig | undefined,
  options: LoadOptions,
  terminal: Terminal,
): Promise<readonly DoctorProbe[]> {
  const { machineProbes } = await import("./doctor/machine-probes.ts");
  if (loaded === undefined) {
    const { userNamespacesProbe } = await import("./doctor/isolation-probe.ts");
    return [...machineProbes("possible"), userNamespacesProbe()];
  }
  const { config } = loaded;
  const { dataProbes } = await import("./doctor/data-probes.ts");
  const { endToEndProbe } = await import("./doctor/end-to-end-probe.ts");
  const looks = [...machineProbes(hostUse(config), config.sandbox.root), ...dataProbes(config)];
  if (config.transport === "http") {
    const { portProbe } = await import("./doctor/port-probe.ts");
    looks.push(portProbe(config));
  }
  if (config.sandbox.enabled) {
    const { volumeProbes } = await import("./doctor/data-probes.ts");
    looks.push(...volumeProbes(loaded));
    const { isolationProbe } = await import("./doctor/isolation-probe.ts");
    looks.push(isolationProbe(config, quietLogger(loaded, terminal)));
  }
  return [...looks, endToEndProbe(config, serverCommand(loaded, options))];
}

/** Containers and virtual machines contain their own programs, so the programs of the host do not matter to them. */
function hostUse({ sandbox: { enabled, runtime } }: LoadedConfig["config"]): HostUse {
  if (!enabled) return "none";
  if (runtime === "auto") return "possible";
  return runtime === "bubblewrap" ? "needed" : "none";
}

/**
 * The command line that starts this program with the same configuration over stdio. Its ledger rows have the client
 * `doctor`.
 */
function serverCommand({ file }: LoadedConfig, { flags = [] }: LoadOptions): readonly string[] {
  const [, main = ""] = process.argv;
  const settings = flags
    .filter(({ path }) => path !== "transport")
    .flatMap(({ path, value }) => ["--set", `${path}=${typeof value === "string" ? value : JSON.stringify(value)}`]);
  const config = file === undefined ? ["--no-config"] : ["--config", file];
  const start = ["mcp-server", "start", "--transport", "stdio", "--set", "stdio.clientId=doctor"];
  // A call that needs approval is denied after one second: no operator may be available.
  const impatient = ["--set", "governance.approvalTimeoutSeconds=1"];
  return [process.execPath, ...process.execArgv, main, ...start, ...config, ...settings, ...impatient];
}

async function lookAndRepair(
  look: DoctorProbe,
  mayRepair: boolean,
  terminal: Terminal,
): Promise<readonly DoctorCheck[]> {
  const found = await look.look();
  const isWell = found.every(({ status }) => status === "ok");
  if (isWell || !mayRepair || look.repair === undefined) return found;
  const done = await look.repair();
  if (done === undefined) return found;
  terminal.err(`${paint("repaired:", "green", terminal.errColor)} ${done}\n`);
  return look.look();
}

function print(checks: readonly DoctorCheck[], terminal: Terminal): void {
  const { outColor: color, width } = terminal;
  const rows = checks.map(({ category, name, status, message }) => [status, category, name, message]);
  terminal.out(renderTable({ columns: ["STATUS", "CATEGORY", "CHECK", "MESSAGE"], rows, width, color }));
  for (const { name, status, fix } of checks) {
    if (fix !== undefined) terminal.out(`\n${paint(`${status}: ${name}`, STYLE[status], color)}\n  ${fix}\n`);
  }
  const failures = checks.filter(({ status }) => status === "failed").length;
  terminal.out(
    failures === 0 ? "\nEverything that is needed is here.\n" : `\n${failures} of ${checks.length} checks failed.\n`,
  );
}
