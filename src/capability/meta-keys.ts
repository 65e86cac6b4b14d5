/** What OwlClaw writes into `_meta` of resources, and reads from it. `docs/skills.md` says what each holds. */
export const META = {
  /** In `resources/list`: which resources to list. */
  filter: "io.owlclaw/filter",
  /** In `resources/read`: which part is wanted, and what the client has. */
  wish: "io.owlclaw/read",
  /** On contents: digest, size, time, range. */
  content: "io.owlclaw/content",
  /** On a resource that is a skill: category, tags and what else its frontmatter says. */
  skill: "io.owlclaw/skill",
} as const;

export interface ContentFacts {
  readonly digest: string;
  readonly size: number;
  readonly lastModified: string;
  /** The bytes from `start` up to `end`, which is not part of them. */
  readonly range?: { readonly start: number; readonly end: number };
  readonly notModified?: true;
}
