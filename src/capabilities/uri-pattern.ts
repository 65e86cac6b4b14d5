const EXPRESSION = /\{([^{}]+)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * An RFC 6570 template such as `orders://{region}/{id}`: expands nothing, only matches. Beside plain variables it knows
 * `{+path}`, which may hold slashes, and `{?offset,length}` at the end, of which each may be left out.
 */
export class UriPattern {
  readonly template: string;
  readonly variables: readonly string[];
  readonly #regex: RegExp;
  readonly #queryNames: readonly string[];

  static isTemplate(uri: string): boolean {
    return uri.includes("{");
  }

  constructor(template: string) {
    const { path, queryNames } = splitQuery(template);
    const variables: string[] = [];
    let source = "";
    let end = 0;
    for (const match of path.matchAll(EXPRESSION)) {
      const expression = match[1] ?? "";
      const name = expression.startsWith("+") ? expression.slice(1) : expression;
      addName(variables, name, template);
      const characters = expression.startsWith("+") ? "[^?#]+" : "[^/?#]+";
      source += `${escapeRegex(path.slice(end, match.index))}(${characters})`;
      end = match.index + match[0].length;
    }
    const pathVariables = variables.length;
    for (const name of queryNames) addName(variables, name, template);
    this.template = template;
    this.variables = variables.slice(0, pathVariables);
    this.#queryNames = queryNames;
    this.#regex = new RegExp(
      `^${source}${escapeRegex(path.slice(end))}${queryNames.length > 0 ? "(?:\\?([^#]*))?" : ""}$`,
    );
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
    const query = match[this.variables.length + 1];
    return query === undefined ? values : this.#withQuery(values, query);
  }

  /** A parameter that the template does not name, or one given twice, fits nothing. */
  #withQuery(values: Record<string, string>, query: string): Record<string, string> | undefined {
    for (const [name, value] of new URLSearchParams(query)) {
      if (!this.#queryNames.includes(name) || name in values) return undefined;
      values[name] = value;
    }
    return values;
  }
}

function splitQuery(template: string): { readonly path: string; readonly queryNames: readonly string[] } {
  const match = /\{\?([^{}]+)\}$/.exec(template);
  if (match === null) return { path: template, queryNames: [] };
  return { path: template.slice(0, match.index), queryNames: (match[1] ?? "").split(",") };
}

function addName(variables: string[], name: string, template: string): void {
  if (!NAME.test(name)) {
    throw new TypeError(`"{${name}}" in the URI template "${template}" is not a plain variable; write {name}`);
  }
  if (variables.includes(name)) throw new TypeError(`the URI template "${template}" names "${name}" twice`);
  variables.push(name);
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
