/** Makes files of the repository: path from the root → text. */
export type Generator = (root: string) => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;
