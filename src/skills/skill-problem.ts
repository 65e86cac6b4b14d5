/** Something about a skill that its author should change. */
export interface SkillProblem {
  /** Relative to `skills.dir`. */
  readonly path: string;
  readonly line?: number;
  /** `error`: the skill, or the file, is not served. `warning`: it is. */
  readonly severity: "error" | "warning";
  readonly message: string;
  readonly fix: string;
}

/** `ecommerce/refund/SKILL.md:3: error: …; fix: …`, the form that editors and people jump from. */
export function describeProblem({ path, line, severity, message, fix }: SkillProblem): string {
  return `${path}${line === undefined ? "" : `:${line}`}: ${severity}: ${message}; ${fix}`;
}
