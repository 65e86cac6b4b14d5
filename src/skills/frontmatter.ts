import { LineCounter, parseDocument } from "yaml";

/** More than this is no description of a skill, but an attack on the parser. */
const MAX_FRONTMATTER_CHARS = 65_536;

export type Frontmatter =
  | { readonly ok: true; readonly values: Readonly<Record<string, unknown>>; readonly body: string }
  | { readonly ok: false; readonly message: string; readonly line: number; readonly fix: string };

/** Reads the YAML between the `---` lines that a SKILL.md begins with. Data only: no tags, no aliases, a bounded size. */
export function readFrontmatter(markdown: string): Frontmatter {
  const text = markdown.startsWith("\uFEFF") ? markdown.slice(1) : markdown;
  const opening = /^---[ \t]*\r?\n/.exec(text);
  if (opening === null) {
    return failed(
      "SKILL.md does not begin with frontmatter",
      1,
      "begin the file with a line ---, name, description, ---",
    );
  }
  const rest = text.slice(opening[0].length);
  const closing = /^---[ \t]*(?:\r?\n|$)/m.exec(rest.slice(0, MAX_FRONTMATTER_CHARS));
  if (closing === null) {
    const message =
      rest.length > MAX_FRONTMATTER_CHARS
        ? `the frontmatter is longer than ${MAX_FRONTMATTER_CHARS} characters`
        : "the frontmatter has no end";
    return failed(message, 1, "close the frontmatter with a line ---");
  }
  return parse(rest.slice(0, closing.index), rest.slice(closing.index + closing[0].length));
}

function parse(yaml: string, body: string): Frontmatter {
  const lines = new LineCounter();
  try {
    const document = parseDocument(yaml, { lineCounter: lines, version: "1.2", schema: "core", prettyErrors: false });
    const [error = document.warnings[0]] = document.errors;
    // The frontmatter begins on the second line of the file.
    if (error !== undefined) return failed(error.message, lines.linePos(error.pos[0]).line + 1, "correct the YAML");
    const values: unknown = document.toJS({ maxAliasCount: 0 });
    if (values === null) return { ok: true, values: {}, body };
    if (!isRecord(values)) return failed("the frontmatter is no mapping", 2, "write key: value lines");
    return { ok: true, values, body };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isAlias = /alias/i.test(reason);
    return failed(
      isAlias ? "the frontmatter uses YAML anchors and aliases" : `the frontmatter cannot be read: ${reason}`,
      2,
      isAlias ? "write the values out" : "write plain key: value lines",
    );
  }
}

function failed(message: string, line: number, fix: string): Frontmatter {
  return { ok: false, message, line, fix };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
