import { messageOf } from "../errors/owl-error.ts";
import { isRecord } from "../platform/records.ts";
import { LineCounter, parseDocument } from "yaml";

/** Bounds the work of the YAML parser. */
const MAX_FRONTMATTER_CHARS = 65_536;

type Frontmatter =
  | { readonly ok: true; readonly values: Readonly<Record<string, unknown>>; readonly body: string }
  | { readonly ok: false; readonly message: string; readonly line: number; readonly fix: string };

/** Parses the YAML between the `---` lines at the start of a SKILL.md: no tags, no aliases, bounded size. */
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
    // Line 1 of the file is the opening "---".
    if (error !== undefined) return failed(error.message, lines.linePos(error.pos[0]).line + 1, "correct the YAML");
    const values: unknown = document.toJS({ maxAliasCount: 0 });
    if (values === null) return { ok: true, values: {}, body };
    if (!isRecord(values)) return failed("the frontmatter is not a mapping", 2, "write key: value lines");
    return { ok: true, values, body };
  } catch (error) {
    const reason = messageOf(error);
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

type Values = Readonly<Record<string, unknown>>;

/** The frontmatter in one form, from any of the supported notations. */
export interface SkillMetadata {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  readonly tags: readonly string[];
  readonly version: string | undefined;
  readonly license: string | undefined;
  readonly compatibility: string | undefined;
  readonly allowedTools: readonly string[];
  readonly riskLevel: string | undefined;
  readonly requiresConfirmation: boolean | undefined;
  readonly constraints: Values | undefined;
}

interface MetadataFinding {
  readonly message: string;
  readonly fix: string;
}

const NAME = /^(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/;
const MAX_DESCRIPTION_CHARS = 1024;
const MAX_COMPATIBILITY_CHARS = 500;

/**
 * The keys of the Agent Skills standard, and the older ones of OwlClaw (`tags`, `version`, `risk_level`,
 * `requires_confirmation`, `owlclaw.constraints`), at the top, under `metadata` or under `owlclaw`.
 */
export function readMetadata(
  values: Values,
  { folder, body }: { readonly folder: string; readonly body: string },
): { readonly metadata: SkillMetadata; readonly findings: readonly MetadataFinding[] } {
  const mappings = mappingsOf(values);
  const find = (...keys: readonly string[]): unknown => findIn(mappings, keys);
  const written = text(own(values, "name"));
  const described = text(own(values, "description"));
  const compatibility = text(find("compatibility"));
  const metadata: SkillMetadata = {
    name: written ?? folder,
    title: text(find("title")),
    description: described ?? firstParagraph(body),
    tags: words(find("tags"), /,/),
    version: scalar(find("version")),
    license: text(find("license")),
    compatibility,
    allowedTools: words(find("allowed-tools", "allowed_tools"), /[\s,]+/),
    riskLevel: text(find("risk_level", "riskLevel", "risk-level")),
    requiresConfirmation: flag(find("requires_confirmation", "requiresConfirmation", "requires-confirmation")),
    constraints: record(find("constraints", "owlclaw.constraints")),
  };
  const findings = standardFindings({ written, described, folder, compatibility });
  if (isTextMap(own(values, "metadata"))) return { metadata, findings };
  const message = "metadata has a value that is not text: clients of the skills extension do not see the skill";
  return {
    metadata,
    findings: [...findings, { message, fix: "write each value under metadata as text, a list as a, b, c" }],
  };
}

interface StandardFields {
  readonly written: string | undefined;
  readonly described: string | undefined;
  readonly folder: string;
  readonly compatibility: string | undefined;
}

function standardFindings({ written, described, folder, compatibility }: StandardFields): readonly MetadataFinding[] {
  const findings: MetadataFinding[] = [];
  const report = (message: string, fix: string): number => findings.push({ message, fix });
  if (written === undefined) report("the frontmatter has no name", `write name: ${folder}`);
  else if (written !== folder)
    report(
      `its name "${written}" is not the name of its folder, "${folder}"`,
      "give the folder and the skill one name",
    );
  else if (!NAME.test(written))
    report(
      `the name "${written}" breaks the rules of the Agent Skills standard`,
      "use at most 64 lowercase letters, digits and single hyphens",
    );
  if (described === undefined)
    report("the frontmatter has no description", "say what the skill does and when to use it");
  else if (charactersIn(described) > MAX_DESCRIPTION_CHARS)
    report(
      `the description is longer than ${MAX_DESCRIPTION_CHARS} characters`,
      "move details into the text of the skill",
    );
  if (compatibility !== undefined && charactersIn(compatibility) > MAX_COMPATIBILITY_CHARS)
    report(
      `compatibility is longer than ${MAX_COMPATIBILITY_CHARS} characters`,
      "shorten it, or move it into the text of the skill",
    );
  return findings;
}

/** The standard counts code points. */
function charactersIn(text: string): number {
  return Array.from(text).length;
}

/** The mappings in which a key may be written, that of the standard first. */
function mappingsOf(values: Values): readonly Values[] {
  const metadata = record(own(values, "metadata"));
  const mappings = [values, metadata, record(own(values, "owlclaw")), metadata && record(own(metadata, "owlclaw"))];
  return mappings.filter((mapping) => mapping !== undefined);
}

function findIn(mappings: readonly Values[], keys: readonly string[]): unknown {
  const constraints = mappings
    .map((mapping) => record(own(mapping, "constraints")))
    .filter((each) => each !== undefined);
  for (const mapping of [...mappings, ...constraints])
    for (const key of keys) {
      const value = own(mapping, key);
      if (value !== undefined && value !== null) return value;
    }
  return undefined;
}

function own(values: Values, key: string): unknown {
  return Object.hasOwn(values, key) ? values[key] : undefined;
}

function record(value: unknown): Values | undefined {
  return isRecord(value) ? value : undefined;
}

function isTextMap(value: unknown): boolean {
  return value === undefined || (isRecord(value) && Object.values(value).every((item) => typeof item === "string"));
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function scalar(value: unknown): string | undefined {
  return typeof value === "number" ? String(value) : text(value);
}

function flag(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === "true" || value === "yes") return true;
  return value === "false" || value === "no" ? false : undefined;
}

function words(value: unknown, separator: RegExp): readonly string[] {
  const items: readonly unknown[] =
    typeof value === "string" ? value.split(separator) : Array.isArray(value) ? value : [];
  return [...new Set(items.map(scalar).filter((item) => item !== undefined))];
}

/** The default description: the first paragraph of the text. */
function firstParagraph(body: string): string {
  const paragraph = body.split(/\r?\n\s*\r?\n/).find((block) => block.trim() !== "" && !/^\s*(#|```|---)/.test(block));
  return (paragraph ?? "").replaceAll(/\s+/g, " ").trim().slice(0, MAX_DESCRIPTION_CHARS);
}
