import { TimeExceeded, withinTime } from "../platform/within-time.ts";

/** A URI whose match takes longer does not match. */
const LONGEST_MS = 5;
const QUICK_CHARS = 200;
const EXPRESSION = /\{([^{}]+)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * An RFC 6570 template such as `orders://{region}/{id}`. It supports plain variables, `{+path}`, which may contain
 * slashes, and optional query parameters at the end, such as `{?offset,length}`.
 */
export class UriPattern {
  readonly template: string;
  readonly variables: readonly string[];
  readonly #regex: RegExp;
  readonly #queryNames: readonly string[];
  /** The literal text before the first variable, then behind each variable. */
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

  /** The decoded variables, or `undefined` when the URI does not match. */
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

  /** Several variables in one segment can cause backtracking, so a long URI is matched with a time limit. */
  #exec(uri: string): RegExpExecArray | null {
    if (uri.length <= QUICK_CHARS || this.variables.length < 2) return this.#regex.exec(uri);
    try {
      return withinTime(LONGEST_MS, () => this.#regex.exec(uri));
    } catch (error) {
      if (error instanceof TimeExceeded) return null;
      throw error;
    }
  }

  /** The normal URI of these variables, without the query. Undefined when a variable is missing. */
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

  /** The URI as clients build it: a path variable is taken as it is, since it may be escaped already. */
  expand(values: Readonly<Record<string, string>>): string | undefined {
    return this.#written(values, (value, isPath) => (isPath ? value : encodeURIComponent(value)));
  }

  /** The query part, in the order of the template. */
  query(values: Readonly<Record<string, string>>): string {
    const given = this.#queryNames.filter((name) => Object.hasOwn(values, name));
    const pairs = given.map((name) => `${name}=${encodeURIComponent(values[name] ?? "")}`);
    return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
  }

  /** An unknown or repeated parameter does not match. */
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
    // An invalid percent sequence matches no resource.
    return undefined;
  }
}

/** A lone surrogate cannot be encoded in a URI. */
function isBroken(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

function escapeRegex(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Escapes a text as one segment of a URI. */
type Spelling = (text: string) => string;

/** By RFC 3986: escapes only the characters that must be escaped. */
const normal: Spelling = (text) => encodeURI(text).replace(/[/?#]/g, encodeURIComponent);

/** Escapes only characters with a meaning in URIs. */
export const readable: Spelling = (text) => text.replace(/[%/?#]/g, encodeURIComponent);

/** The spellings of a URI that clients use; the first one is the normal form. */
export const SPELLINGS: readonly Spelling[] = [normal, readable, encodeURIComponent];
