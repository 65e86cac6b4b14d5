import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import {
  type FoundSkill,
  MAX_FILE_BYTES,
  scanSkills,
  type SkillFile,
  type SkillProblem,
  TimeSlice,
} from "./scan-skills.ts";
import { loadSkill, type Skill, type SkillState, withNewManifest, withChangedFiles } from "./load-skill.ts";
import { readInside } from "./read-inside.ts";
import { ContentCache, type SkillContent, toContent } from "./skill-contents.ts";
import { MANIFEST, type SkillPath, formatSkillUri } from "../capability/skill-uri.ts";

const CACHE_BYTES = 64 * 1024 * 1024;

interface LibraryChange {
  readonly isChanged: boolean;
  /** URIs whose content changed. */
  readonly updated: readonly string[];
}

/** The skills below one folder, in memory; `refresh` reads what changed on disk. */
export class SkillLibrary {
  readonly dir: string;
  readonly #cache = new ContentCache(CACHE_BYTES);
  #root: string;
  #entries: ReadonlyMap<string, SkillState> = new Map();
  #scanProblems: readonly SkillProblem[] = [];
  #problems: readonly SkillProblem[] = [];
  #skills: ReadonlyMap<string, Skill> = new Map();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(dir: string) {
    this.dir = dir;
    this.#root = dir;
  }

  /** The real path of `skills.dir`, which is watched. */
  get root(): string {
    return this.#root;
  }

  /** By path, sorted by URI. The same object until something changes. */
  get skills(): ReadonlyMap<string, Skill> {
    return this.#skills;
  }

  get problems(): readonly SkillProblem[] {
    return this.#problems;
  }

  /** Scans the whole folder, or only around these files. Scans run one at a time. */
  refresh(files?: ReadonlySet<string>): Promise<LibraryChange> {
    const run = this.#queue.then(() => this.#refresh(files));
    this.#queue = run.catch(() => undefined);
    return run;
  }

  /** The innermost skill that contains the path, and the file in it. */
  find(path: SkillPath): { readonly skill: Skill; readonly name: string } | undefined {
    for (let length = path.length; length > 0; length -= 1) {
      const skill = this.#skills.get(path.slice(0, length).join("/"));
      if (skill !== undefined) return { skill, name: path.slice(length).join("/") || MANIFEST };
    }
    return undefined;
  }

  async content(file: SkillFile): Promise<SkillContent> {
    const { diskPath, fingerprint, bytes } = file;
    const cached = this.#cache.get(diskPath, fingerprint);
    if (cached !== undefined) return cached;
    const content = toContent(
      bytes === undefined ? await readInside(this.#root, diskPath, { maxBytes: MAX_FILE_BYTES }) : { ...file, bytes },
    );
    this.#cache.set(diskPath, content);
    return content;
  }

  async #refresh(files: ReadonlySet<string> | undefined): Promise<LibraryChange> {
    const root = await realpath(this.dir).catch(() => this.dir);
    const scopes = files === undefined || root !== this.#root ? [[]] : this.#scopesOf(files);
    this.#root = root;
    const isOutside = (path: string): boolean =>
      !scopes.some((scope) => isWithin(path, scope.join("/").normalize("NFC")));
    const entries = new Map([...this.#entries].filter(([key]) => isOutside(key)));
    const problems = this.#scanProblems.filter(({ path }) => isOutside(path));
    const breather = new TimeSlice();
    for (const scope of scopes) {
      const scan = await scanSkills(root, scope, breather);
      problems.push(...scan.problems);
      for (const found of scan.skills) {
        await breather.yieldIfUsedUp();
        entries.set(found.path.join("/"), this.#load(found));
      }
    }
    return this.#settle(entries, problems);
  }

  /** Reads a SKILL.md only when it changed. */
  #load(found: FoundSkill): SkillState {
    const before = this.#entries.get(found.path.join("/"));
    const manifest = found.files.get(MANIFEST);
    return before !== undefined && manifest?.fingerprint === before.found.files.get(MANIFEST)?.fingerprint
      ? withChangedFiles(before, found)
      : withNewManifest(before, found, loadSkill(this.#root, found));
  }

  #settle(entries: ReadonlyMap<string, SkillState>, scanProblems: readonly SkillProblem[]): LibraryChange {
    const before = this.#skills;
    const loaded = [...entries.values()].map((entry) => entry.loaded);
    const named = settleNames(loaded.map(({ skill }) => skill).filter((skill) => skill !== undefined));
    const all = [...scanProblems, ...loaded.flatMap(({ problems }) => problems), ...named.problems];
    this.#entries = entries;
    this.#scanProblems = scanProblems;
    this.#problems = all.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
    const isSame =
      named.skills.size === before.size && [...named.skills].every(([key, skill]) => before.get(key) === skill);
    if (!isSame) this.#skills = named.skills;
    return { isChanged: !isSame, updated: isSame ? [] : changedUris(before, named.skills) };
  }

  /** The folders to scan again: for each file the outermost skill that contains it, or else its folder. */
  #scopesOf(files: ReadonlySet<string>): readonly (readonly string[])[] {
    const scopes = new Map<string, readonly string[]>();
    for (const file of files) {
      const disk = relative(this.#root, file).split("/");
      if (disk[0] === ".." || disk[0] === "") return [[]];
      const scope = this.#outermostSkill(disk) ?? disk.slice(0, -1);
      scopes.set(scope.join("/"), scope);
    }
    const all = [...scopes.keys()];
    return [...scopes].filter(([key]) => !all.some((other) => other !== key && isWithin(key, other))).map(([, s]) => s);
  }

  #outermostSkill(disk: readonly string[]): readonly string[] | undefined {
    for (let length = 1; length < disk.length; length += 1) {
      const key = disk.slice(0, length).join("/").normalize("NFC");
      if (this.#entries.has(key)) return disk.slice(0, length);
    }
    return undefined;
  }
}

function isWithin(path: string, scope: string): boolean {
  return scope === "" || path === scope || path.startsWith(`${scope}/`);
}

/** Sorts the skills and leaves out those whose name is taken by another skill of the category. */
function settleNames(all: readonly Skill[]): {
  readonly skills: ReadonlyMap<string, Skill>;
  readonly problems: readonly SkillProblem[];
} {
  const folders = new Set(all.map(({ key }) => key));
  const problems: SkillProblem[] = [];
  const claimed = new Map<string, string>();
  const kept = all
    .toSorted((a, b) => (a.uri < b.uri ? -1 : 1))
    .filter((skill) => {
      const { key, category, metadata } = skill;
      const named = category === "" ? metadata.name : `${category}/${metadata.name}`;
      if (named === key) return true;
      const holder = folders.has(named) ? named : claimed.get(named);
      if (holder === undefined) {
        claimed.set(named, key);
        return true;
      }
      problems.push({
        path: `${key}/${MANIFEST}`,
        line: 1,
        severity: "error",
        message: `its name "${metadata.name}" is that of the skill in ${holder}`,
        fix: "name it as its folder is named",
      });
      return false;
    });
  return { skills: new Map(kept.map((skill) => [skill.key, skill])), problems };
}

/** URIs of files that were created, changed or removed. A SKILL.md has two URIs. */
function changedUris(before: ReadonlyMap<string, Skill>, after: ReadonlyMap<string, Skill>): readonly string[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].flatMap((key) => changedFiles(before.get(key), after.get(key)));
}

function changedFiles(old: Skill | undefined, now: Skill | undefined): readonly string[] {
  const skill = now ?? old;
  if (old === now || skill === undefined) return [];
  const [oldFiles, nowFiles] = [filesOf(old), filesOf(now)];
  const names = new Set([...oldFiles.keys(), ...nowFiles.keys()]);
  return [...names]
    .filter((name) => oldFiles.get(name)?.fingerprint !== nowFiles.get(name)?.fingerprint)
    .flatMap((name) => {
      const uri = formatSkillUri([...skill.path, ...name.split("/")]);
      return name === MANIFEST ? [skill.uri, uri] : [uri];
    });
}

function filesOf(skill: Skill | undefined): Skill["files"] {
  return skill?.files ?? new Map();
}
