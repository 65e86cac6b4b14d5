/** A package index as the machine's own tools are configured to use it. */
export interface PackageIndex {
  /** Rules for `network.allow`, one for each host and port. */
  readonly rules: readonly string[];
  /** Tells the same tool inside a sandbox where the index is. */
  readonly env: Readonly<Record<string, string>>;
}

/** Where a tool's configuration is looked up. The caller reads the environment, this folder does not. */
export interface ToolSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** Runs a program and gives what it prints. Default: really runs it, for 20 seconds at most. */
  readonly runTool?: (command: string, args: readonly string[]) => Promise<string>;
  /** Files that hold for every user. Default: the tool's own. */
  readonly systemFiles?: readonly string[];
}

/** The URL without user, password, query and fragment: a sandbox gets no credentials. Undefined unless it is http or https. */
export function toPublicUrl(text: string): string | undefined {
  try {
    const url = new URL(text.trim());
    if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return undefined;
  }
}

export function ruleForUrl(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? defaultPort(protocol) : port}`;
}

function defaultPort(protocol: string): string {
  return protocol === "https:" ? "443" : "80";
}
