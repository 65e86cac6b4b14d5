export interface Section {
  /** The first segment of the path; empty for the start page. */
  readonly path: string;
  readonly title: string;
  /** The key that opens the section after `g`. */
  readonly key: string;
}

export const SECTIONS: readonly Section[] = [
  { path: "", title: "Now", key: "n" },
  { path: "approvals", title: "Approvals", key: "a" },
  { path: "ledger", title: "Ledger", key: "l" },
  { path: "spend", title: "Spend", key: "s" },
  { path: "policy", title: "Policy", key: "p" },
  { path: "tools", title: "Tools", key: "t" },
  { path: "skills", title: "Skills", key: "k" },
];
