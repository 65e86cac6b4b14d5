import { type Command, Option } from "commander";
import { DECISIONS, OUTCOMES, ROW_KINDS } from "../governance/ledger/query.ts";
import type { CommandAction } from "./command.ts";
import { addConfigFlags } from "./config-flags.ts";

type Runs = (command: Command, load: () => Promise<CommandAction>) => void;

/** `ledger list|show|export|verify|acknowledge|stats`. They can be used while servers run. */
export function addLedger(server: Command, runs: Runs, examples: (...lines: readonly string[]) => string): void {
  const ledger = server.command("ledger").description("Looks into the record of every call, and checks it.");

  const list = withFilters(addConfigFlags(ledger.command("list"), "common"))
    .description("Lists calls, the newest first.")
    .option("--limit <number>", "How many rows at most.", "50")
    .option("--json", "Prints JSON.")
    .addHelpText(
      "after",
      examples(
        "owlclaw mcp-server ledger list --from 1h",
        "owlclaw mcp-server ledger list --client ada --decision deny",
        "owlclaw mcp-server ledger list --tool 'file_*' --json",
      ),
    );
  runs(list, async () => (await import("./ledger.ts")).ledgerListCommand);

  const show = addConfigFlags(ledger.command("show"), "common")
    .description("Shows all of one row.")
    .argument("<seq>", "Number of the row.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server ledger show 42"));
  runs(show, async () => (await import("./ledger.ts")).ledgerShowCommand);

  const exports = withFilters(addConfigFlags(ledger.command("export"), "common"))
    .description("Writes rows as JSON lines or CSV, the oldest first.")
    .addOption(new Option("--format <format>", "jsonl or csv.").choices(["jsonl", "csv"]).default("jsonl"))
    .option("--output <file>", "Where to write. Default: stdout.")
    .addHelpText(
      "after",
      examples(
        "owlclaw mcp-server ledger export --from 2026-07-01 --to 2026-08-01 > july.jsonl",
        "owlclaw mcp-server ledger export --format csv --output calls.csv",
      ),
    );
  runs(exports, async () => (await import("./ledger.ts")).ledgerExportCommand);

  const verify = addConfigFlags(ledger.command("verify"), "common")
    .description("Checks every row against the chain. Exit code 1 when something was changed, dropped or added.")
    .option("--head <head>", "A head that was published earlier, as in 1234:9f86…; finds a tail that was cut off.")
    .option("--json", "Prints JSON.")
    .addHelpText(
      "after",
      examples("owlclaw mcp-server ledger verify", "owlclaw mcp-server ledger verify --head 1999:9f86…"),
    );
  runs(verify, async () => (await import("./ledger.ts")).ledgerVerifyCommand);

  addAcknowledge(ledger, runs, examples);

  const stats = withFilters(addConfigFlags(ledger.command("stats"), "common"))
    .description("Adds up calls and costs by client, tool and day.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server ledger stats --from 7d"));
  runs(stats, async () => (await import("./ledger.ts")).ledgerStatsCommand);
}

function addAcknowledge(ledger: Command, runs: Runs, examples: (...lines: readonly string[]) => string): void {
  const acknowledge = addConfigFlags(ledger.command("acknowledge"), "common")
    .description("Records that an operator knows of lost rows; verify and /health report them until then.")
    .argument("<seq>", "Number of the row that says what was lost, as verify names it.")
    .requiredOption("--by <name>", "Your name, for the record.")
    .addHelpText("after", examples("owlclaw mcp-server ledger acknowledge 41 --by 'Ada Lovelace'"));
  runs(acknowledge, async () => (await import("./ledger.ts")).ledgerAcknowledgeCommand);
}

/** `stats`: the same as `ledger stats`. */
export function addStats(server: Command, runs: Runs, examples: (...lines: readonly string[]) => string): void {
  const stats = withFilters(addConfigFlags(server.command("stats"), "common"))
    .description("Adds up calls and costs by client, tool and day.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server stats --from 7d --client ada"));
  runs(stats, async () => (await import("./ledger.ts")).ledgerStatsCommand);
}

function withFilters(command: Command): Command {
  return command
    .option("--client <name>", "Only calls of this principal.")
    .option("--label <name>", "Only calls of clients that call themselves this.")
    .option("--tool <name>", "Only this tool or URI; * and ? stand for anything.")
    .addOption(new Option("--kind <kind>", "Only rows of this kind.").choices([...ROW_KINDS]))
    .addOption(new Option("--decision <decision>", "Only what was allowed, or denied.").choices([...DECISIONS]))
    .addOption(new Option("--outcome <outcome>", "Only what ended like this.").choices([...OUTCOMES]))
    .option("--rule <id>", "Only what this rule decided.")
    .option("--trace <id>", "Only calls with this trace id.")
    .option("--sandbox <name>", "Only calls in this sandbox.")
    .option("--from <time>", "Not before: a time ago such as 15m, 1h or 7d, or a date.")
    .option("--to <time>", "Before: a time ago, or a date.");
}
