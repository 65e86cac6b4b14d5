import { Argument, type Command } from "commander";
import type { CommandAction } from "./command-action.ts";

type Runs = (command: Command, load: () => Promise<CommandAction>) => void;
type Examples = (...lines: readonly string[]) => string;

export function addTrust(server: Command, runs: Runs, examples: Examples): void {
  const trust = server
    .command("trust")
    .description("Shows a configuration file, and records that you trust what it says now.")
    .addArgument(new Argument("[file]", "The file.").default("mcp-server.yaml"))
    .option("--yes", "Does not show it and does not ask.")
    .option("--remove", "Trusts it no longer.")
    .addHelpText(
      "after",
      `\nA server that finds mcp-server.yaml in its working directory uses it only when you have trusted that file with that
content. A file that is named with --config or MCP_SERVER_CONFIG needs no trust.${examples("owlclaw mcp-server trust", "owlclaw mcp-server trust --remove")}`,
    );
  runs(trust, async () => (await import("./trust.ts")).trustCommand);
}
