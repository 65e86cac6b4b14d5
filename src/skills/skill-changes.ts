import type { Skill } from "./load-skill.ts";
import type { SkillProblem } from "./skill-problem.ts";
import { formatSkillUri, MANIFEST } from "../capability/skill-uri.ts";

/** Puts the skills in order and leaves out those that take the name of a neighbour. */
export function settleNames(all: readonly Skill[]): {
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

/** URIs of files that were made, changed or removed. The SKILL.md of a skill has two. */
export function changedUris(before: ReadonlyMap<string, Skill>, after: ReadonlyMap<string, Skill>): readonly string[] {
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
