const EXPRESSION = /\{([^{}]+)\}/g;

/** An RFC 6570 level-1 template such as `orders://{region}/{id}`: expands nothing, only matches. */
export class UriPattern {
  readonly template: string;
  readonly variables: readonly string[];
  readonly #regex: RegExp;

  static isTemplate(uri: string): boolean {
    return uri.includes("{");
  }

  constructor(template: string) {
    const variables: string[] = [];
    let source = "";
    let end = 0;
    for (const match of template.matchAll(EXPRESSION)) {
      const name = match[1] ?? "";
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        throw new TypeError(`"{${name}}" in the URI template "${template}" is not a plain variable; write {name}`);
      }
      if (variables.includes(name)) throw new TypeError(`the URI template "${template}" names "${name}" twice`);
      variables.push(name);
      source += `${escapeRegex(template.slice(end, match.index))}([^/?#]+)`;
      end = match.index + match[0].length;
    }
    this.template = template;
    this.variables = variables;
    this.#regex = new RegExp(`^${source}${escapeRegex(template.slice(end))}$`);
  }

  /** The decoded variables, or `undefined` when the URI does not fit. */
  match(uri: string): Record<string, string> | undefined {
    const match = this.#regex.exec(uri);
    if (match === null) return undefined;
    const values: Record<string, string> = {};
    for (const [index, name] of this.variables.entries()) {
      const decoded = decode(match[index + 1] ?? "");
      if (decoded === undefined) return undefined;
      values[name] = decoded;
    }
    return values;
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // A broken percent sequence fits no resource.
    return undefined;
  }
}

function escapeRegex(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
