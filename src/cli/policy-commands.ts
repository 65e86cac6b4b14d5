import type { Command } from "commander";
import type { CommandAction } from "./command.ts";
import { addConfigFlags } from "./config-flags.ts";

type Runs = (command: Command, load: () => Promise<CommandAction>) => void;
type Examples = (...lines: readonly string[]) => string;

/** `policy explain|test|replay`. */
export function addPolicy(server: Command, runs: Runs, examples: Examples): void {
  const policy = server.command("policy").description("Tries the governance policy before callers do.");
  const candidate = ["--policy <file>", "A policy file to try in place of the configured one."] as const;

  const explain = addConfigFlags(policy.command("explain"), "common")
    .description("Says what would happen to a call, and by which rule. Exit code 1 when it would be refused.")
    .requiredOption("--client <name>", "The principal that calls.")
    .requiredOption("--tool <name>", "A tool under any of its names, a URI, or prompt:NAME.")
    .argument("[json]", "Arguments of the call as a JSON object.", "{}")
    .option("--group <name...>", "Groups that the principal is in.")
    .option("--claims <json>", "Claims of the principal's token as a JSON object.")
    .option("--label <name>", "What the client calls itself.")
    .option(...candidate)
    .option("--json", "Prints JSON.")
    .addHelpText(
      "after",
      examples(`owlclaw mcp-server policy explain --client ada --tool shell_exec '{"command": "ls"}'`),
    );
  runs(explain, async () => (await import("./policy.ts")).policyExplainCommand);

  const test = addConfigFlags(policy.command("test"), "common")
    .description("Runs expectations against the policy. Exit code 1 when one does not hold.")
    .argument("<file>", "YAML list of client, tool, args and expect (allow, deny or confirm).")
    .option(...candidate)
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server policy test policy-tests.yaml"));
  runs(test, async () => (await import("./policy.ts")).policyTestCommand);

  const replay = addConfigFlags(policy.command("replay"), "common")
    .description("Holds calls of the ledger against a candidate policy and shows what would change.")
    .argument("<file>", "The candidate policy file.")
    .option("--from <time>", "Not before: a time ago such as 1h or 7d, or a date.", "1d")
    .option("--to <time>", "Before: a time ago, or a date.")
    .option("--client <name>", "Only calls of this principal.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server policy replay candidate.yaml --from 7d"));
  runs(replay, async () => (await import("./policy-replay.ts")).policyReplayCommand);
}

/** `approvals list|approve|deny`. */
export function addApprovals(server: Command, runs: Runs, examples: Examples): void {
  const approvals = server.command("approvals").description("Decides calls that wait for an operator.");

  const list = addConfigFlags(approvals.command("list"), "common")
    .description("Lists the calls that wait at servers with the same data folder.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server approvals list"));
  runs(list, async () => (await import("./approvals.ts")).approvalsListCommand);

  for (const decision of ["approve", "deny"] as const) {
    const command = addConfigFlags(approvals.command(decision), "common")
      .description(decision === "approve" ? "Shows a call that waits, asks, and lets it run, once." : "Refuses a call.")
      .argument("<id>", "Id of the call, as the list shows it.")
      .option("--reason <text>", "Told to the caller when it is refused, and kept in the ledger.")
      .addHelpText("after", examples(`owlclaw mcp-server approvals ${decision} 0123456789ab`));
    if (decision === "approve")
      command.option("--hash <hash>", "Approves without asking when the call has this hash, as the list shows it.");
    runs(command, async () => {
      const { approvalsDecide } = await import("./approvals.ts");
      return approvalsDecide(decision);
    });
  }
}
