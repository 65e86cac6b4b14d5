import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { stateOf, type FileState } from "./read-inside.ts";
import { MANIFEST, MAX_SKILL_DEPTH, segmentProblem, type SkillPath } from "../capability/skill-uri.ts";
import { setImmediate } from "node:timers/promises";

export interface SkillProblem {
  /** Relative to `skills.dir`. */
  readonly path: string;
  readonly line?: number;
  /** `error`: the skill, or the file, is not served. `warning`: it is. */
  readonly severity: "error" | "warning";
  readonly message: string;
  readonly fix: string;
}

/** `ecommerce/refund/SKILL.md:3: error: …; …`: editors link this format to the file. */
export function describeProblem({ path, line, severity, message, fix }: SkillProblem): string {
  return `${path}${line === undefined ? "" : `:${line}`}: ${severity}: ${message}; ${fix}`;
}

/** Limits that hosts of the skills extension must support. */
const MAX_FILES_PER_SKILL = 512;
export const MAX_FILE_BYTES: number = 16 * 1024 * 1024;
/** The scan blocks the event loop for at most so long at a time. */
const SLICE_MS = 5;
/** Folders that tools create. */
const IGNORED = new Set(["node_modules", "__pycache__"]);

export interface SkillFile extends FileState {
  /** Relative to the skill's folder: `references/limits.md`. */
  readonly name: string;
  readonly path: SkillPath;
  /** The path below `skills.dir` on disk, whose names may be in another Unicode normal form. */
  readonly diskPath: string;
  /** The contents that were read with this state; set for SKILL.md only. */
  readonly bytes?: Buffer;
}

/** A folder with a SKILL.md. */
export interface FoundSkill {
  readonly path: SkillPath;
  /** The path on disk. */
  readonly disk: readonly string[];
  readonly files: ReadonlyMap<string, SkillFile>;
  /** Folders below the skill's own: `references`. A folder of a nested skill belongs to that skill. */
  readonly folders: readonly string[];
}

export interface Scan {
  readonly skills: readonly FoundSkill[];
  readonly problems: readonly SkillProblem[];
}

/**
 * Finds the skills at and below a folder. It reads names and sizes only and follows no links. Synchronous calls take a
 * tenth of the time of asynchronous ones; the time slice keeps the event loop running.
 */
export async function scanSkills(root: string, disk: readonly string[], breather: TimeSlice): Promise<Scan> {
  const walk = new Walk(root, breather);
  await walk.folder({ path: disk.map((name) => name.normalize("NFC")), disk, owner: undefined });
  return { skills: walk.skills, problems: walk.problems };
}

interface OpenSkill extends FoundSkill {
  readonly files: Map<string, SkillFile>;
  readonly folders: string[];
}

interface Folder {
  readonly path: SkillPath;
  readonly disk: readonly string[];
  readonly owner: OpenSkill | undefined;
}

class Walk {
  readonly skills: OpenSkill[] = [];
  readonly problems: SkillProblem[] = [];
  readonly #root: string;
  readonly #breather: TimeSlice;
  readonly #overfull = new Set<OpenSkill>();

  constructor(root: string, breather: TimeSlice) {
    this.#root = root;
    this.#breather = breather;
  }

  /** Reports whether the folder contains a skill, or files that belong to none. */
  async folder(folder: Folder): Promise<{ readonly hasSkill: boolean; readonly hasFiles: boolean }> {
    const { path, disk } = folder;
    await this.#breather.yieldIfUsedUp();
    const entries = this.#entries(folder);
    const manifest = entries.find(({ name }) => name === MANIFEST);
    const owner = manifest === undefined ? folder.owner : this.#open(folder, manifest);
    if (owner !== undefined && owner === folder.owner) owner.folders.push(path.slice(owner.path.length).join("/"));
    let hasSkill = owner !== undefined;
    let hasFiles = false;
    for (const entry of entries) {
      const inner = await this.#entry(entry, { path, disk, owner });
      hasSkill ||= inner.hasSkill;
      hasFiles ||= inner.hasFiles;
    }
    if (!hasSkill && hasFiles && path.length > 0) this.#reportMissing(folder, entries);
    return { hasSkill: hasSkill || hasFiles, hasFiles: false };
  }

  #entries({ path, disk, owner }: Folder): readonly Dirent[] {
    if (path.length > MAX_SKILL_DEPTH) {
      this.#report(path, "it is nested too deeply", `keep skills at most ${MAX_SKILL_DEPTH} folders deep`);
      return [];
    }
    try {
      const entries = readdirSync(join(this.#root, ...disk), { withFileTypes: true });
      const kept = entries.filter(({ name }) => !name.startsWith(".") && !IGNORED.has(name));
      return this.#distinct(
        path,
        kept.sort((a, b) => (a.name < b.name ? -1 : 1)),
      );
    } catch (error) {
      const isGone = error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
      if (!isGone)
        this.#report(path, `the folder cannot be read: ${reasonOf(error)}`, "make it readable for the server");
      else if (owner === undefined && path.length === 0)
        this.#report(["."], "the skills folder does not exist", "create it, or correct skills.dir");
      return [];
    }
  }

  /** Two names that differ only in their Unicode normal form would have the same URI. */
  #distinct(path: SkillPath, entries: readonly Dirent[]): readonly Dirent[] {
    const seen = new Set<string>();
    return entries.filter(({ name }) => {
      const normal = name.normalize("NFC");
      if (seen.has(normal))
        this.#report([...path, normal], "the name occurs twice, in different Unicode spellings", "rename one");
      return seen.size !== seen.add(normal).size;
    });
  }

  /** A folder is a skill when its SKILL.md is a regular file. */
  #open({ path, disk, owner }: Folder, manifest: Dirent): OpenSkill | undefined {
    if (path.length === 0) {
      this.#report([MANIFEST], "a SKILL.md in the folder of all skills has no name", "put it in a folder of its own");
    } else if (manifest.isFile()) {
      const skill: OpenSkill = { path, disk, files: new Map(), folders: [] };
      this.skills.push(skill);
      return skill;
    }
    return owner;
  }

  async #entry(entry: Dirent, { path, disk, owner }: Folder) {
    const nothing = { hasSkill: false, hasFiles: false };
    const name = entry.name.normalize("NFC");
    const here: SkillPath = [...path, name];
    const problem = segmentProblem(name);
    if (problem !== undefined) {
      this.#report(here, `its name cannot be part of a URI: ${problem}`, "rename it");
      return nothing;
    }
    if (entry.isDirectory()) return this.folder({ path: here, disk: [...disk, entry.name], owner });
    if (!entry.isFile()) {
      const what = entry.isSymbolicLink() ? "a link, and links are not followed" : "not a regular file";
      this.#report(here, `it is ${what}`, "put a copy of the file in its place");
      return { hasSkill: name === MANIFEST, hasFiles: true };
    }
    if (owner !== undefined) this.#addFile(owner, here, [...disk, entry.name]);
    return { hasSkill: false, hasFiles: true };
  }

  #addFile(skill: OpenSkill, path: SkillPath, disk: readonly string[]): void {
    const name = path.slice(skill.path.length).join("/");
    const others = skill.files.size - (skill.files.has(MANIFEST) ? 1 : 0);
    if (others >= MAX_FILES_PER_SKILL - 1 && name !== MANIFEST) return this.#reportMany(skill);
    const diskPath = disk.join("/");
    try {
      const stats = lstatSync(join(this.#root, diskPath), { bigint: true });
      const file: SkillFile = { ...stateOf(stats), name, path, diskPath };
      if (file.sizeBytes > MAX_FILE_BYTES)
        this.#report(path, `it is larger than ${MAX_FILE_BYTES} bytes`, "keep large data elsewhere and link to it");
      else skill.files.set(name, file);
    } catch (error) {
      this.#report(path, `its attributes cannot be read: ${reasonOf(error)}`, "make it readable for the server");
    }
  }

  #reportMany(skill: OpenSkill): void {
    if (this.#overfull.has(skill)) return;
    this.#overfull.add(skill);
    this.#report(
      skill.path,
      `the skill has more than ${MAX_FILES_PER_SKILL} files; the rest is not served`,
      "split it",
    );
  }

  #reportMissing({ path }: Folder, entries: readonly Dirent[]): void {
    const similar = entries.find(({ name }) => name.toLowerCase() === MANIFEST.toLowerCase());
    const fix =
      similar === undefined
        ? `add a ${MANIFEST}, or move the files elsewhere`
        : `rename ${similar.name} to ${MANIFEST}`;
    this.#report(path, `the folder holds no ${MANIFEST}`, fix);
  }

  #report(path: SkillPath, message: string, fix: string): void {
    this.problems.push({ path: path.join("/"), severity: "error", message, fix });
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return code === "EACCES" ? "permission denied" : code || String(error);
}

/** Yields to the event loop when synchronous work has used up its slice of time. */
export class TimeSlice {
  #sinceMs = performance.now();

  async yieldIfUsedUp(): Promise<void> {
    if (performance.now() - this.#sinceMs < SLICE_MS) return;
    await setImmediate();
    this.#sinceMs = performance.now();
  }
}
