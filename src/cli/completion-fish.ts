import type { CompletionNode } from "./completion-tree.ts";

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
