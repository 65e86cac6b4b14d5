/** A policy that cannot be used, with everything that is wrong with it. */
export class PolicyError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "PolicyError";
    this.problems = problems;
  }
}
