import { closeSync, openSync, readSync, statSync } from "node:fs";
import { basename } from "node:path";
import type { Document, LineCounter, YAMLParseError, YAMLWarning } from "yaml";
import { contradictions, unknownKey, type Candidate, type LayerValues, type Origin } from "./candidate.ts";
import { ConfigError, type ConfigIssue } from "./config-error.ts";
import { CONFIG_TREE, findKey, isSection, type ConfigSection } from "./keys.ts";
import { MASK, showValue } from "./mask.ts";

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_ALIASES = 20;

/** @throws ConfigError when the file is missing, too large, not UTF-8 or not readable. */
export function readConfigText(file: string): string {
  try {
    return readBounded(file);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([fileIssue(file, `cannot be read: ${reason}`, "give the path of a readable YAML file")]);
  }
}

/** @throws ConfigError for anything but a regular file, such as a FIFO or a device. */
export function assertFile(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return;
  throw new ConfigError([fileIssue(file, "is not a regular file", "remove it, or ignore it with --no-config")]);
}

export async function parseConfigText(file: string, text: string): Promise<LayerValues> {
  // The parser is loaded only when there is a file, because loading it takes a noticeable part of the start-up time.
  const { parseDocument, LineCounter } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
    strict: true,
    merge: false,
  });
  const problems = [...document.errors, ...document.warnings];
  if (problems.length > 0)
    return { candidates: [], issues: problems.map((problem) => syntaxIssue(file, problem, lines)) };
  return fromDocument(file, document, lines);
}

function fromDocument(file: string, document: Document, lines: LineCounter): LayerValues {
  let tree: unknown;
  try {
    tree = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    return {
      candidates: [],
      issues: [fileIssue(file, "has too many aliases or aliases that do not resolve", "write the values out")],
    };
  }
  const originOf = (path: readonly string[]): Origin => {
    const node: unknown = document.getIn(path, true);
    const offset = hasRange(node) ? node.range[0] : undefined;
    const { line, col } = offset === undefined ? { line: 0, col: 0 } : lines.linePos(offset);
    return { layer: "file", source: line === 0 ? basename(file) : `${basename(file)}:${line}:${col}` };
  };
  const walk: Walk = { originOf, candidates: [], issues: [] };
  walkSection(CONFIG_TREE, { value: tree, path: [] }, walk);
  return { candidates: walk.candidates, issues: [...walk.issues, ...contradictions(walk.candidates)] };
}

interface Walk {
  readonly originOf: (path: readonly string[]) => Origin;
  readonly candidates: Candidate[];
  readonly issues: ConfigIssue[];
}

interface Place {
  readonly value: unknown;
  readonly path: readonly string[];
}

function walkSection(section: ConfigSection, { value, path }: Place, walk: Walk): void {
  // A section whose keys are all commented out is null in YAML.
  if (value === null || value === undefined) return;
  if (!isPlainObject(value)) {
    walk.issues.push(notASection(section, value, walk.originOf(path)));
    return;
  }
  for (const [name, child] of Object.entries(value)) {
    const childPath = [...path, name];
    const node = section.children.get(name) ?? findKey(childPath.join("."));
    if (node === undefined) walk.issues.push(unknownKey(childPath.join("."), child, walk.originOf(childPath)));
    else if (isSection(node)) walkSection(node, { value: child, path: childPath }, walk);
    else walk.candidates.push({ key: node, value: child, origin: walk.originOf(childPath) });
  }
}

function notASection(section: ConfigSection, value: unknown, origin: Origin): ConfigIssue {
  const names = [...section.children.keys()].join(", ");
  return {
    path: section.path === "" ? "(the whole file)" : section.path,
    value: holdsSecrets(section) ? MASK : showValue(section.path, value),
    reason: "must hold keys of its own, not a single value",
    fix: `write the keys below it: ${names}`,
    ...origin,
  };
}

function holdsSecrets(section: ConfigSection): boolean {
  return [...section.children.values()].some((node) => (isSection(node) ? holdsSecrets(node) : node.secret));
}

function syntaxIssue(file: string, problem: YAMLParseError | YAMLWarning, lines: LineCounter): ConfigIssue {
  const { line, col } = lines.linePos(problem.pos[0]);
  return {
    path: `${basename(file)}:${line}:${col}`,
    reason: `line ${line}, column ${col}: ${syntaxReason(problem)}`,
    fix: problem.code === "DUPLICATE_KEY" ? "keep one of the keys with the same name" : "correct the YAML there",
    layer: "file",
    source: file,
  };
}

function syntaxReason({ code, message }: YAMLParseError | YAMLWarning): string {
  if (code === "MULTIPLE_DOCS") return "only one YAML document may be in the file";
  // The text after a colon quotes the file, and the quoted part may be a secret.
  const [reason = "is not valid YAML"] = message.split(": ");
  return reason;
}

function fileIssue(file: string, reason: string, fix: string): ConfigIssue {
  return { path: file, reason, fix, layer: "file", source: file };
}

function readBounded(file: string): string {
  const descriptor = openSync(file, "r");
  try {
    const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
    let length = 0;
    for (;;) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (read === 0) break;
      length += read;
      if (length > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(buffer.subarray(0, length));
  } finally {
    closeSync(descriptor);
  }
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function hasRange(node: unknown): node is { readonly range: readonly [number, number, number] } {
  return typeof node === "object" && node !== null && "range" in node && Array.isArray(node.range);
}
