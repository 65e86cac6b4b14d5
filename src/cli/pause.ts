import { loadConfig } from "../config/load.ts";
import type { Paused } from "../operator/control-client.ts";
import { type CommandCall, UsageError, operatorName } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { jsonText } from "./text.ts";

/**
 * Without a client and without `--all` it only lists the paused clients, so that a missing argument does not pause all
 * clients.
 */
export async function pauseCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const [client] = args;
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listPaused, pauseClient } = await import("../operator/control-client.ts");
  const isAll = flags["all"] === true;
  if (isAll && client !== undefined) throw new UsageError("name a client, or use --all, not both");
  const paused =
    client === undefined && !isAll
      ? await listPaused(config.sandbox.root)
      : await pauseClient(config.sandbox.root, {
          ...(client !== undefined && { client }),
          by: operatorName(),
          reason: typeof flags["reason"] === "string" ? flags["reason"] : "",
          cancel: flags["cancel"] === true,
        });
  if (paused === undefined) throw noServer();
  show(terminal, paused, flags["json"] === true);
  return 0;
}

export async function resumeCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const [client] = args;
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listPaused, resumeClient } = await import("../operator/control-client.ts");
  const isAll = flags["all"] === true;
  if (isAll === (client !== undefined)) throw new UsageError("name a client, or use --all");
  const wasPaused = await resumeClient(config.sandbox.root, {
    ...(client !== undefined && { client }),
    by: operatorName(),
  });
  const paused = await listPaused(config.sandbox.root);
  if (paused === undefined) throw noServer();
  if (!wasPaused)
    throw new UsageError(`${client ?? "everybody"} is not paused; \`owlclaw mcp-server pause\` says who is`);
  show(terminal, paused, flags["json"] === true);
  return 0;
}

function noServer(): UsageError {
  return new UsageError("no server with this data folder is running: start it first");
}

function show(terminal: Terminal, paused: Paused, isJson: boolean): void {
  if (isJson) return terminal.out(jsonText({ paused }));
  if (paused.length === 0) return terminal.err("Nobody is paused.\n");
  const rows = paused.map(({ client, by, since, reason }) => [
    client === "*" ? "everybody" : client,
    by,
    since,
    reason,
  ]);
  const columns = ["CLIENT", "BY", "SINCE", "REASON"];
  terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
}
