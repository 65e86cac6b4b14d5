import { OwlError } from "../errors/owl-error.ts";
import { readable } from "./uri-pattern.ts";

/** The file that makes a folder a skill. */
export const MANIFEST = "SKILL.md";
/** How deep a skill may be nested, its own folder included. */
export const MAX_SKILL_DEPTH = 16;

const SCHEME = "skill://";
const MAX_URI_CHARS = 4096;
/** Characters that `encodeURIComponent` does not escape; `*` is a wildcard here. */
const UNESCAPED = /[!'()*]/g;

/** The path of a skill or file below `skills.dir`, by segments. */
export type SkillPath = readonly string[];

/** The one normal URI of a path. */
export function formatSkillUri(path: SkillPath): string {
  for (const segment of path) assertSegment(segment, path.join("/"));
  if (path.length === 0) throw invalid("", "it names nothing");
  return SCHEME + path.map(encodeSegment).join("/");
}

/** The normal URI, and the URI without percent-encoding. */
export function spellSkillUri(path: SkillPath): readonly string[] {
  return [formatSkillUri(path), SCHEME + path.map(readable).join("/")];
}

/** The path that a URI names, in any spelling. */
export function parseSkillUri(uri: string): SkillPath {
  const path = splitUri(uri).map((segment) => decodeSegment(segment, uri));
  if (path.some((segment) => segment === undefined))
    throw invalid(uri, "it has a wildcard, and only one thing can be read at a time", {
      hint: "use wildcards to filter a list; write a star in a name as %2A",
    });
  return path.filter((segment) => segment !== undefined);
}

/** All but the last segment. */
export function categoryOf(path: SkillPath): string {
  return path.slice(0, -1).join("/");
}

export function isSkillUri(uri: string): boolean {
  return uri.startsWith(SCHEME);
}

/** Compiles a pattern such as `skill://ecommerce/*`: a star matches inside one segment, `**` matches any number of segments. */
export function skillMatcher(pattern: string): (path: SkillPath) => boolean {
  const segments = splitUri(pattern);
  for (const segment of segments) if (segment !== "**") decodeSegment(segment.replaceAll("*", "x"), pattern);
  const tests = segments.map((segment) => (segment === "**" ? undefined : segmentTest(segment)));
  return (path) => matches(tests, path);
}

type SegmentTest = (segment: string) => boolean;

function matches(tests: readonly (SegmentTest | undefined)[], path: SkillPath): boolean {
  let reachable = new Set([0]);
  for (const test of tests) {
    const next = new Set<number>();
    for (const at of reachable) {
      if (test === undefined) for (let end = at; end <= path.length; end += 1) next.add(end);
      else if (at < path.length && test(path[at] ?? "")) next.add(at + 1);
    }
    reachable = next;
  }
  return reachable.has(path.length);
}

/** Finds each part between stars once, from left to right, so that no pattern causes backtracking. */
function segmentTest(segment: string): SegmentTest {
  const [first = "", ...rest] = segment.split("*").map((part) => decodeURIComponent(part).normalize("NFC"));
  const last = rest.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}

function splitUri(uri: string): readonly string[] {
  if (!isSkillUri(uri)) throw invalid(uri, `its scheme must be "skill", as in skill://category/name`);
  if (uri.length > MAX_URI_CHARS) throw invalid(uri, `it is longer than ${MAX_URI_CHARS} characters`);
  if (/[?#]/.test(uri)) throw invalid(uri, "it has a query or fragment", { hint: "leave out what follows ? or #" });
  return uri.slice(SCHEME.length).split("/");
}

/** Undefined for a segment with a wildcard. */
function decodeSegment(segment: string, uri: string): string | undefined {
  if (segment.includes("*")) return undefined;
  let decoded: string;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    throw invalid(uri, `"${segment}" is not percent-encoded UTF-8`, { hint: "write % itself as %25" });
  }
  assertSegment(decoded, uri);
  return decoded;
}

function assertSegment(segment: string, uri: string): void {
  const problem = segmentProblem(segment);
  if (problem !== undefined) throw invalid(uri, problem);
}

/** Why a name cannot be a segment of a skill's URI; undefined when it can. */
export function segmentProblem(segment: string): string | undefined {
  if (segment === "") return "it has an empty segment";
  if (segment === "." || segment === "..") return `it has the segment "${segment}", which leads elsewhere`;
  if (/[/\\]/.test(segment)) return "a segment contains a slash or backslash";
  if (/[\u0000-\u001f\u007f-\u009f]/.test(segment)) return "a segment contains a control character";
  if (/\p{Surrogate}/u.test(segment)) return "a segment has a lone surrogate";
  if (segment.normalize("NFC") !== segment) return "a segment is not in Unicode's normal form NFC";
  return undefined;
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(
    UNESCAPED,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function invalid(uri: string, reason: string, { hint }: { readonly hint?: string } = {}): OwlError {
  const shown = uri.slice(0, 256);
  return new OwlError("invalid_params", `"${shown}" is not a skill URI: ${reason}`, {
    facts: { uri: shown },
    hint: hint ?? "write skill://category/name, or skill://category/name/file for a file of the skill",
  });
}
