import { run } from "./run.ts";
import { exitFlushed, processTerminal, surviveClosedPipes } from "./terminal.ts";

/** The command line of this very process, to its end. */
export async function runProcess(): Promise<void> {
  surviveClosedPipes();
  await exitFlushed(await run(process.argv.slice(2), processTerminal()));
}
