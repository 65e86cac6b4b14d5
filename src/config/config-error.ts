export type ConfigLayer = "default" | "file" | "env" | "flag";

/** One problem of the configuration, with its fix. */
export interface ConfigIssue {
  /** The key, for example `http.port`. A file name when the file itself cannot be read. */
  readonly path: string;
  /** The value as text, masked when it is or may be a secret. Absent when there is no value. */
  readonly value?: string;
  readonly reason: string;
  readonly fix: string;
  readonly layer: ConfigLayer;
  /** Where the value was set: `mcp-server.yaml:12:3`, `MCP_SERVER_PORT`, `--port`. */
  readonly source: string;
}

/** All problems of a configuration. */
export class ConfigError extends Error {
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(renderIssues(issues));
    this.name = "ConfigError";
    this.issues = issues;
  }
}

/**
 * A configuration file was found in the working directory, and this user has not trusted it, or not its current
 * content.
 */
export class UntrustedConfigError extends ConfigError {
  readonly file: string;
  readonly text: string;
  /** The content that was trusted before; `undefined` when this path never was trusted. */
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
