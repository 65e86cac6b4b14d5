import type { CommandCall } from "./command.ts";
import type { Argument, Command, Option } from "commander";

/** The scripts contain the whole command tree, so that completion starts no process. */
export async function completionCommand({ terminal, root, args }: CommandCall): Promise<number> {
  const nodes = commandNodes(root);
  const [shell] = args;
  if (shell === "bash") terminal.out(bashCompletion(nodes));
  else if (shell === "zsh") terminal.out(zshCompletion(nodes));
  else terminal.out(fishCompletion(nodes));
  return 0;
}

export interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

export interface CompletionOption extends CompletionWord {
  /** Whether the option takes a value. Shells complete `choices`, or files when there are none. */
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** One command, as completion needs it: its path and the words that may follow. */
export interface CompletionNode {
  /** For example `owlclaw mcp-server start`. */
  readonly path: string;
  readonly children: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
  /** Accepted values of the positional arguments. */
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

export function bashCompletion(nodes: readonly CompletionNode[]): string {
  const deeper = nodes.map(({ path }) => `"${path}"`).slice(1);
  const values = nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(
        ({ word, choices }) =>
          `    "${path} ${word}") ${choices.length === 0 ? "files=1" : `words="${choices.join(" ")}"`} ;;`,
      ),
  );
  const words = nodes.map(({ path, children, options, argumentChoices }) => {
    const next = [...children.map(({ word }) => word), ...argumentChoices, ...options.map(({ word }) => word)];
    return `      "${path}") words="${next.join(" ")}" ;;`;
  });
  return `# bash completion for owlclaw. Load it with: eval "$(owlclaw completion bash)"
_owlclaw() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="owlclaw" words="" files="" i
  for (( i = 1; i < COMP_CWORD; i++ )); do
    case "$path \${COMP_WORDS[i]}" in
      ${deeper.join("|")}) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $prev" in
${values.join("\n")}
  esac
  if [[ -n "$files" ]]; then
    COMPREPLY=( $(compgen -f -- "$cur") )
    return
  fi
  if [[ -z "$words" ]]; then
    case "$path" in
${words.join("\n")}
    esac
  fi
  COMPREPLY=( $(compgen -W "$words" -- "$cur") )
}
complete -o filenames -F _owlclaw owlclaw
`;
}

export function fishCompletion(nodes: readonly CompletionNode[]): string {
  const paths = nodes.map(({ path }) => quote(path)).slice(1);
  const lines = nodes.flatMap(({ path, children, options, argumentChoices }) => {
    const here = `complete -c owlclaw -n ${quote(`__owlclaw_at ${quote(path)}`)}`;
    return [
      ...children.map(({ word, description }) => `${here} -f -a ${quote(word)} -d ${quote(description)}`),
      ...argumentChoices.map((word) => `${here} -f -a ${quote(word)}`),
      ...options.map(({ word, description, takesValue, choices }) => {
        const value = choices.length > 0 ? ` -x -a ${quote(choices.join(" "))}` : takesValue ? " -r" : " -f";
        return `${here} -l ${word.slice(2)}${value} -d ${quote(description)}`;
      }),
    ];
  });
  return `# fish completion for owlclaw. Save it as ~/.config/fish/completions/owlclaw.fish.
function __owlclaw_at
    set -l at owlclaw
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" ${paths.join(" ")}
            set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
${lines.join("\n")}
`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

export function zshCompletion(nodes: readonly CompletionNode[]): string {
  const deeper = nodes.map(({ path }) => quoteForZsh(path)).slice(1);
  const values = nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ word, choices }) => {
        const offer = choices.length === 0 ? "_files" : `compadd -- ${choices.join(" ")}`;
        return `    ${quoteForZsh(`${path} ${word}`)}) ${offer}; return ;;`;
      }),
  );
  const words = nodes.map(({ path, children, options, argumentChoices }) => {
    const plain = argumentChoices.map((word) => ({ word, description: "" }));
    return `    ${quoteForZsh(path)}) next=(${[...children, ...plain, ...options].map(describe).join(" ")}) ;;`;
  });
  return `#compdef owlclaw
# zsh completion for owlclaw. Save it as _owlclaw in a folder of your $fpath.
_owlclaw() {
  local at="owlclaw" i
  local -a next
  for (( i = 2; i < CURRENT; i++ )); do
    case "$at \${words[i]}" in
      (${deeper.join("|")}) at="$at \${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  case "$at" in
${words.join("\n")}
  esac
  _describe 'owlclaw' next
}
if [ "$funcstack[1]" = "_owlclaw" ]; then _owlclaw "$@"; else compdef _owlclaw owlclaw; fi
`;
}

/** \`_describe\` splits word and description at the first colon. */
function describe({ word, description }: CompletionWord): string {
  return quoteForZsh(`${word.replaceAll(":", "\\:")}:${description}`);
}

function quoteForZsh(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
