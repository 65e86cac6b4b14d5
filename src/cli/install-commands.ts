import { Argument, type Command, Option } from "commander";
import type { CommandAction } from "./command.ts";
import { CLIENT_NAMES } from "./install.ts";

type Runs = (command: Command, load: () => Promise<CommandAction>) => void;
type Examples = (...lines: readonly string[]) => string;

export function addInstall(root: Command, runs: Runs, examples: Examples): void {
  const install = shared(root.command("install"))
    .description("Writes this server into an MCP client's own configuration, after showing what would change.")
    .option(
      "--config <file>",
      "The server's configuration file. Default: none, also where the client's folder has one.",
    )
    .addHelpText(
      "after",
      examples(
        "owlclaw install claude-code",
        "owlclaw install vscode --scope project --config mcp-server.yaml",
        "owlclaw install cursor --dry-run",
      ),
    );
  runs(install, async () => (await import("./install.ts")).installCommand);

  const uninstall = shared(root.command("uninstall"))
    .description("Takes this server out of an MCP client's configuration, after showing what would change.")
    .addHelpText("after", examples("owlclaw uninstall claude-code", "owlclaw uninstall cursor --yes"));
  runs(uninstall, async () => (await import("./install.ts")).uninstallCommand);
}

function shared(command: Command): Command {
  return command
    .addArgument(new Argument("<client>", "The client.").choices(CLIENT_NAMES))
    .addOption(
      new Option("--scope <scope>", "For you everywhere, or for the project in this folder.")
        .choices(["user", "project"])
        .default("user"),
    )
    .option("--name <name>", "What the client calls the server.", "owlclaw")
    .option("--dry-run", "Shows what would change and writes nothing.")
    .option("--yes", "Does not ask.");
}

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
