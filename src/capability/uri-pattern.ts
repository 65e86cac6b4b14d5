import { TimeExceeded, withinTime } from "../platform/within-time.ts";

/** A URI that takes longer to be divided into variables is one that does not fit. */
const LONGEST_MS = 5;
const QUICK_CHARS = 200;
const EXPRESSION = /\{([^{}]+)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * An RFC 6570 template such as `orders://{region}/{id}`. Beside plain variables it knows
 * `{+path}`, which may hold slashes, and `{?offset,length}` at the end, of which each may be left out.
 */
export class UriPattern {
  readonly template: string;
  readonly variables: readonly string[];
  readonly #regex: RegExp;
  readonly #queryNames: readonly string[];
  /** What stands between the variables: before the first, then behind each. */
  readonly #between: readonly string[];
  readonly #pathNames: ReadonlySet<string>;

  static isTemplate(uri: string): boolean {
    return uri.includes("{");
  }

  constructor(template: string) {
    const { path, queryNames } = splitQuery(template);
    const variables: string[] = [];
    const pathNames = new Set<string>();
    const between: string[] = [];
    let source = "";
    let end = 0;
    for (const match of path.matchAll(EXPRESSION)) {
      const expression = match[1] ?? "";
      const isPath = expression.startsWith("+");
      const name = isPath ? expression.slice(1) : expression;
      addName(variables, name, template);
      if (isPath) pathNames.add(name);
      between.push(path.slice(end, match.index));
      source += `${escapeRegex(path.slice(end, match.index))}(${isPath ? "[^?#]+" : "[^/?#]+"})`;
      end = match.index + match[0].length;
    }
    const pathVariables = variables.length;
    for (const name of queryNames) addName(variables, name, template);
    this.template = template;
    this.variables = variables.slice(0, pathVariables);
    this.#queryNames = queryNames;
    this.#between = [...between, path.slice(end)];
    this.#pathNames = pathNames;
    this.#regex = new RegExp(
      `^${source}${escapeRegex(path.slice(end))}${queryNames.length > 0 ? "(?:\\?([^#]*))?" : ""}$`,
    );
  }

  /** The decoded variables, or `undefined` when the URI does not fit. */
  match(uri: string): Record<string, string> | undefined {
    const match = this.#exec(uri);
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

  /** Several variables in one part of a URI multiply the ways to divide it. */
  #exec(uri: string): RegExpExecArray | null {
    if (uri.length <= QUICK_CHARS || this.variables.length < 2) return this.#regex.exec(uri);
    try {
      return withinTime(LONGEST_MS, () => this.#regex.exec(uri));
    } catch (error) {
      if (error instanceof TimeExceeded) return null;
      throw error;
    }
  }

  /** The URI with these variables, up to its query: the same for the same variables. Undefined as long as one is missing. */
  write(values: Readonly<Record<string, string>>, spell: Spelling): string | undefined {
    return this.#written(values, (value, isPath) => (isPath ? value.split("/").map(spell).join("/") : spell(value)));
  }

  #written(
    values: Readonly<Record<string, string>>,
    write: (value: string, isPath: boolean) => string,
  ): string | undefined {
    const [start = "", ...rest] = this.#between;
    let uri = start;
    for (const [index, name] of this.variables.entries()) {
      const value = Object.hasOwn(values, name) ? values[name] : undefined;
      if (value === undefined || isBroken(value)) return undefined;
      uri += write(value, this.#pathNames.has(name)) + (rest[index] ?? "");
    }
    return uri;
  }

  /** As a client makes a URI of it: what stands in a path is taken as it is, since it may be escaped already. */
  expand(values: Readonly<Record<string, string>>): string | undefined {
    return this.#written(values, (value, isPath) => (isPath ? value : encodeURIComponent(value)));
  }

  /** What follows, in the order of the template; nothing when none of it is given. */
  query(values: Readonly<Record<string, string>>): string {
    const given = this.#queryNames.filter((name) => Object.hasOwn(values, name));
    const pairs = given.map((name) => `${name}=${encodeURIComponent(values[name] ?? "")}`);
    return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
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
    return isBroken(text) ? undefined : decodeURIComponent(text);
  } catch {
    // A broken percent sequence fits no resource.
    return undefined;
  }
}

/** Half a character: no URI can hold it. */
function isBroken(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

function escapeRegex(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Writes a text so that it can stand between two slashes of a URI. */
type Spelling = (text: string) => string;

/** As RFC 3986 has it: what can stand there as it is, does. */
const normal: Spelling = (text) => encodeURI(text).replace(/[/?#]/g, encodeURIComponent);

/** As people write it: only what would mean something else is escaped. */
export const readable: Spelling = (text) => text.replace(/[%/?#]/g, encodeURIComponent);

/** As clients and people write one and the same URI; the first is the one that we use. */
export const SPELLINGS: readonly Spelling[] = [normal, readable, encodeURIComponent];
