import type { Argument, Command, Option } from "commander";

export interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

export interface CompletionOption extends CompletionWord {
  /** Whether a value follows; its choices where they are known, otherwise files are offered. */
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** One command, as shells see it: the words that lead there and what may come next. */
export interface CompletionNode {
  /** As in `owlclaw mcp-server start`. */
  readonly path: string;
  readonly children: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
  /** Choices of the positional arguments. */
  readonly argumentChoices: readonly string[];
}

export function commandNodes(command: Command, parents = ""): CompletionNode[] {
  const path = parents === "" ? command.name() : `${parents} ${command.name()}`;
  const help = command.createHelp();
  const node: CompletionNode = {
    path,
    children: command.commands.map((child) => ({ word: child.name(), description: child.description() })),
    options: help.visibleOptions(command).flatMap(toOptions),
    argumentChoices: command.registeredArguments.flatMap((argument: Argument) => argument.argChoices ?? []),
  };
  return [node, ...command.commands.flatMap((child) => commandNodes(child, path))];
}

function toOptions(option: Option): CompletionOption[] {
  if (option.long === undefined || option.long === null) return [];
  return [
    {
      word: option.long,
      description: option.description,
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    },
  ];
}
