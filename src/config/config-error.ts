export type ConfigLayer = "default" | "file" | "env" | "flag";

/** One thing that is wrong, in words that lead to the repair. */
export interface ConfigIssue {
  /** The key, as in `http.port`; a file name when the file itself cannot be read. */
  readonly path: string;
  /** The value as text, masked when it is or may be a secret; absent when there is none. */
  readonly value?: string;
  readonly reason: string;
  readonly fix: string;
  readonly layer: ConfigLayer;
  /** Where the value was written: `mcp-server.yaml:12:3`, `MCP_SERVER_PORT`, `--port`. */
  readonly source: string;
}

/** Everything that is wrong with a configuration, found in one go. */
export class ConfigError extends Error {
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(renderIssues(issues));
    this.name = "ConfigError";
    this.issues = issues;
  }
}

/** A file was found in the working directory, and this user has not trusted it, or not its present content. */
export class UntrustedConfigError extends ConfigError {
  readonly file: string;
  readonly text: string;
  /** What was trusted before; `undefined` when this path never was. */
  readonly trustedText: string | undefined;

  constructor({ file, text, trustedText }: Pick<UntrustedConfigError, "file" | "text" | "trustedText">) {
    const reason =
      trustedText === undefined
        ? "it was found in the working directory, and you have not trusted it: it may start programs and lift every rule"
        : "it was found in the working directory, and it has changed since you trusted it";
    const fix = "read it and run `owlclaw mcp-server trust`; or name it with --config; or ignore it with --no-config";
    super([{ path: file, reason, fix, layer: "file", source: file }]);
    this.name = "UntrustedConfigError";
    this.file = file;
    this.text = text;
    this.trustedText = trustedText;
  }
}

function renderIssues(issues: readonly ConfigIssue[]): string {
  const head =
    issues.length === 1 ? "The configuration has a problem:" : `The configuration has ${issues.length} problems:`;
  return [head, ...issues.map(renderIssue)].join("\n\n");
}

function renderIssue({ path, value, reason, fix, layer, source }: ConfigIssue): string {
  const assignment = value === undefined ? path : `${path} = ${value}`;
  const origin = source === path || layer === "default" ? "" : `  (from ${source})`;
  return [`  ${assignment}${origin}`, `    reason: ${reason}`, `    fix:    ${fix}`].join("\n");
}
