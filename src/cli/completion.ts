import type { CommandCall } from "./command-action.ts";
import { bashCompletion } from "./completion-bash.ts";
import { fishCompletion } from "./completion-fish.ts";
import { commandNodes } from "./completion-tree.ts";
import { zshCompletion } from "./completion-zsh.ts";

/** The scripts hold the whole tree, so that a Tab never waits for a process to start. */
export async function completionCommand({ terminal, root, args }: CommandCall): Promise<number> {
  const nodes = commandNodes(root);
  const [shell] = args;
  if (shell === "bash") terminal.out(bashCompletion(nodes));
  else if (shell === "zsh") terminal.out(zshCompletion(nodes));
  else terminal.out(fishCompletion(nodes));
  return 0;
}
