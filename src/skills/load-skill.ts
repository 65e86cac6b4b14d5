import { messageOf } from "../errors/owl-error.ts";
import { readFrontmatter, readMetadata, type SkillMetadata } from "./frontmatter.ts";
import { readHeadInside } from "./read-inside.ts";
import type { FoundSkill, SkillFile, SkillProblem } from "./scan-skills.ts";
import { decode } from "./skill-contents.ts";
import { categoryOf, formatSkillUri, MANIFEST } from "../capability/skill-uri.ts";

/** A longer SKILL.md does not fit into a model's context. */
export const MAX_MANIFEST_BYTES: number = 1024 * 1024;

/** The longest frontmatter, at four bytes per character, and a first paragraph. */
const HEAD_BYTES = 4 * 65_536 + 8192;

export interface Skill extends FoundSkill {
  /** `ecommerce/refund`. */
  readonly key: string;
  readonly uri: string;
  readonly category: string;
  readonly metadata: SkillMetadata;
  /** Of all files. */
  readonly fingerprint: string;
  /** Of the newest file. */
  readonly modifiedMs: number;
  readonly manifestBytes: number;
}

interface LoadedSkill {
  /** Undefined when it cannot be served. */
  readonly skill: Skill | undefined;
  readonly problems: readonly SkillProblem[];
  /** Its SKILL.md with its bytes, unless it is too long to be kept in memory. */
  readonly manifest?: SkillFile | undefined;
  /** SKILL.md is invalid, for example after a save during an edit: the last valid one may be served instead. */
  readonly isUnfinished?: boolean;
}

/** Reads a skill's metadata. Its errors are reported and do not affect other skills. */
export function loadSkill(root: string, found: FoundSkill): LoadedSkill {
  const path = `${found.path.join("/")}/${MANIFEST}`;
  const manifest = found.files.get(MANIFEST);
  // The scan has reported why the file is not served.
  if (manifest === undefined) return { skill: undefined, problems: [] };
  const refuse = (message: string, fix: string, line?: number): LoadedSkill => ({
    skill: undefined,
    problems: [{ path, severity: "error", message, fix, ...(line !== undefined && { line }) }],
    isUnfinished: true,
  });
  if (manifest.sizeBytes > MAX_MANIFEST_BYTES)
    return refuse(`it is larger than ${MAX_MANIFEST_BYTES} bytes`, "move details into files under references/");
  let head: Buffer;
  try {
    head = readHeadInside(root, manifest.diskPath, { maxBytes: HEAD_BYTES });
  } catch (error) {
    const reason = `it cannot be read: ${messageOf(error)}`;
    // Removing the read permission means that it must not be served: no earlier version is used.
    return { ...refuse(reason, "make it readable"), isUnfinished: false };
  }
  const text = decodeHead(head);
  if (text === undefined) return refuse("it is not UTF-8 text", "save it as UTF-8");
  const frontmatter = readFrontmatter(text);
  if (!frontmatter.ok) return refuse(frontmatter.message, frontmatter.fix, frontmatter.line);
  const { values, body } = frontmatter;
  const { metadata, findings } = readMetadata(values, { folder: found.path.at(-1) ?? "", body });
  const problems = findings.map(({ message, fix }): SkillProblem => ({
    path,
    severity: "warning",
    message,
    fix,
    line: 1,
  }));
  const isWhole = head.length === manifest.sizeBytes && head.length < HEAD_BYTES;
  const kept = isWhole ? { ...manifest, bytes: head } : undefined;
  return { skill: toSkill(withManifest(found, kept), metadata), problems, manifest: kept };
}

/** The skill with this SKILL.md instead of the one on disk. */
function withManifest(found: FoundSkill, manifest: SkillFile | undefined): FoundSkill {
  return manifest === undefined ? found : { ...found, files: new Map([...found.files, [MANIFEST, manifest]]) };
}

/** The head may end in the middle of a character. */
function decodeHead(head: Buffer): string | undefined {
  if (head.length < HEAD_BYTES) return decode(head);
  for (let cut = 0; cut < 4; cut += 1) {
    const text = decode(head.subarray(0, head.length - cut));
    if (text !== undefined) return text;
  }
  return undefined;
}

function toSkill(found: FoundSkill, metadata: SkillMetadata): Skill {
  const files = [...found.files.values()];
  return {
    ...found,
    key: found.path.join("/"),
    uri: formatSkillUri(found.path),
    category: categoryOf(found.path),
    metadata,
    fingerprint: fingerprintOf(found),
    modifiedMs: Math.max(...files.map(({ modifiedMs }) => modifiedMs)),
    manifestBytes: found.files.get(MANIFEST)?.sizeBytes ?? 0,
  };
}

function fingerprintOf({ files, folders }: FoundSkill): string {
  const states = [...files.values()].map(({ name, fingerprint }) => `${name}\n${fingerprint}`);
  return [...states.sort(), ...folders].join("\n");
}

/** A skill on disk, and what is served of it. */
export interface SkillState {
  readonly found: FoundSkill;
  readonly loaded: LoadedSkill;
  /** The last valid SKILL.md. */
  readonly good?: SkillFile | undefined;
}

/** The state after a new SKILL.md was read. While that is invalid, the skill is served with the last valid one. */
export function withNewManifest(before: SkillState | undefined, found: FoundSkill, loaded: LoadedSkill): SkillState {
  const { skill, isUnfinished = false } = loaded;
  if (skill !== undefined) return { found, loaded, good: loaded.manifest };
  const served = before?.loaded.skill;
  if (!isUnfinished || served === undefined || before?.good === undefined) return { found, loaded };
  const problems = loaded.problems.map((problem) => ({
    ...problem,
    message: `${problem.message}; the skill is served as it was`,
  }));
  const { good } = before;
  return { found, good, loaded: { ...loaded, problems, skill: renewed(served, withManifest(found, good)) } };
}

/** The state after files of the skill other than SKILL.md may have changed. */
export function withChangedFiles(before: SkillState, found: FoundSkill): SkillState {
  const { loaded, good } = before;
  if (loaded.skill === undefined) return { ...before, found };
  return { ...before, found, loaded: { ...loaded, skill: renewed(loaded.skill, withManifest(found, good)) } };
}

/** Returns the same object when nothing changed. */
function renewed(skill: Skill, found: FoundSkill): Skill {
  return skill.fingerprint === fingerprintOf(found) ? skill : toSkill(found, skill.metadata);
}
