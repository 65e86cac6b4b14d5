import type { CompletionNode, CompletionWord } from "./completion-tree.ts";

export function zshCompletion(nodes: readonly CompletionNode[]): string {
  const deeper = nodes.map(({ path }) => quote(path)).slice(1);
  const values = nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ word, choices }) => {
        const offer = choices.length === 0 ? "_files" : `compadd -- ${choices.join(" ")}`;
        return `    ${quote(`${path} ${word}`)}) ${offer}; return ;;`;
      }),
  );
  const words = nodes.map(({ path, children, options, argumentChoices }) => {
    const plain = argumentChoices.map((word) => ({ word, description: "" }));
    return `    ${quote(path)}) next=(${[...children, ...plain, ...options].map(describe).join(" ")}) ;;`;
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
  return quote(`${word.replaceAll(":", "\\:")}:${description}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
