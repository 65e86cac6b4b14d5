/** What a reader types into one terminal, and what the README says that comes back. */
export interface ReadmeCommand {
  /** As it stands there; one that is continued has several lines. */
  readonly line: string;
  /** Lines below the command; empty where the README shows none. */
  readonly output: readonly string[];
}

export interface ReadmeStep {
  /** A block of commands is typed into a terminal of its own. */
  readonly commands: readonly ReadmeCommand[];
  /** What the reader wrote into `mcp-server.yaml` before it. */
  readonly config: string | undefined;
}

/** The blocks of commands of a page, in its order. */
export function readmeSteps(markdown: string): readonly ReadmeStep[] {
  const steps: ReadmeStep[] = [];
  let config: string | undefined;
  for (const [, language, body = ""] of markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (language === "yaml") config = body;
    if (language === "console") steps.push({ commands: commandsOf(body), config });
  }
  return steps;
}

function commandsOf(block: string): readonly ReadmeCommand[] {
  const commands: { line: string; output: string[] }[] = [];
  for (const text of block.trimEnd().split("\n")) {
    const last = commands.at(-1);
    if (text.startsWith("$ ")) commands.push({ line: text.slice(2), output: [] });
    else if (last === undefined) throw new Error(`a block of commands does not begin with one: ${text}`);
    else if (last.line.endsWith("\\") && last.output.length === 0) last.line += `\n${text}`;
    else last.output.push(text);
  }
  return commands;
}

/** Differs with each run: times, counts of rows, hashes, the width of columns. */
const VOLATILE: readonly [RegExp, string][] = [
  [/ {2,}/g, " {2,}"],
  [/\d+ ms\b/g, String.raw`\d+ ms`],
  [/(?<="duration_ms":)\d+/g, String.raw`\d+`],
  [/\d+ rows\b/g, String.raw`\d+ rows`],
  [/\d+ of them\b/g, String.raw`\d+ of them`],
  [/\b\d+:[0-9a-f]{64}\b/g, String.raw`\d+:[0-9a-f]{64}`],
];

/** What the output must be where the README shows any: all of it, but for what `…` leaves out and what differs with each run. */
export function outputPattern(output: readonly string[]): RegExp {
  if (output.length === 0) return /^/;
  const lines = output.map((line) => (line.trim() === "…" ? String.raw`(?:.*\n)*?` : `${linePattern(line)}\n`));
  // curl ends its output without a new line.
  return new RegExp(`^${lines.join("").replace(/\n$/, "\n?")}$`);
}

function linePattern(line: string): string {
  const escaped = line.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll("…", ".*");
  return VOLATILE.reduce((pattern, [volatile, stands]) => pattern.replaceAll(volatile, () => stands), escaped);
}
