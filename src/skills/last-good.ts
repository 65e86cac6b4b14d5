import { fingerprintOf, type LoadedSkill, type Skill, toSkill, withManifest } from "./load-skill.ts";
import type { FoundSkill, SkillFile } from "./scan-skills.ts";

/** A skill as it stands on the disk, and what is served of it. */
export interface SkillState {
  readonly found: FoundSkill;
  readonly loaded: LoadedSkill;
  /** The last SKILL.md that could be used. */
  readonly good?: SkillFile | undefined;
}

/** The state after a new SKILL.md was read. While that is broken, the skill is served with the one before. */
export function stateAfter(before: SkillState | undefined, found: FoundSkill, loaded: LoadedSkill): SkillState {
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

/** The state after other files of the skill may have changed, and its SKILL.md did not. */
export function stateBeside(before: SkillState, found: FoundSkill): SkillState {
  const { loaded, good } = before;
  if (loaded.skill === undefined) return { ...before, found };
  return { ...before, found, loaded: { ...loaded, skill: renewed(loaded.skill, withManifest(found, good)) } };
}

/** What did not change stays the same object. */
function renewed(skill: Skill, found: FoundSkill): Skill {
  return skill.fingerprint === fingerprintOf(found) ? skill : toSkill(found, skill.metadata);
}
