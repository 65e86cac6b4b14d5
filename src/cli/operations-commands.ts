import type { Command } from "commander";
import type { CommandAction } from "./command.ts";
import { addConfigFlags } from "./config-flags.ts";

type Runs = (command: Command, load: () => Promise<CommandAction>) => void;
type Examples = (...lines: readonly string[]) => string;

export function addDoctor(server: Command, runs: Runs, examples: Examples): void {
  const doctor = addConfigFlags(server.command("doctor"), "all")
    .description("Checks what a server needs on this machine, and has one run a tool. Exit code 1 when a check fails.")
    .option("--fix", "Repairs what can be repaired without asking.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server doctor", "owlclaw mcp-server doctor --fix --json"));
  runs(doctor, async () => (await import("./doctor.ts")).doctorCommand);
}

export function addDashboard(server: Command, runs: Runs, examples: Examples): void {
  const dashboard = addConfigFlags(server.command("dashboard"), "common")
    .description("Prints the address of the page for operators; with auth off, a link that opens it once.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server dashboard"));
  runs(dashboard, async () => (await import("./dashboard.ts")).dashboardCommand);
}

/** `pause` and `resume`: refuse the calls of a client, or of all clients, until they are resumed. */
export function addPause(server: Command, runs: Runs, examples: Examples): void {
  const pause = addConfigFlags(server.command("pause"), "common")
    .description(
      "Refuses every call of a client, at once and until it is resumed. Without a client: says who is paused.",
    )
    .argument("[client]", "The principal to stop.")
    .option("--all", "Stops everybody.")
    .option("--reason <text>", "Told to the client, and kept in the ledger.")
    .option(
      "--cancel",
      "Ends calls that run already. Programs in the background of a sandbox go on until it is stopped.",
    )
    .option("--json", "Prints JSON.")
    .addHelpText(
      "after",
      examples('owlclaw mcp-server pause ada --reason "runs wild" --cancel', "owlclaw mcp-server pause --all"),
    );
  runs(pause, async () => (await import("./pause.ts")).pauseCommand);

  const resume = addConfigFlags(server.command("resume"), "common")
    .description("Lets a client that was paused go on.")
    .argument("[client]", "The principal.")
    .option("--all", "Ends the pause of everybody; clients that are paused by name stay so.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server resume ada"));
  runs(resume, async () => (await import("./pause.ts")).resumeCommand);
}
