import type { CompletionNode } from "./completion-tree.ts";

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
