import type { ResourceContents } from "./content.ts";

const steady = new WeakSet<object>();

/** Says that nobody will ever change this object, so that whatever is made of it may be kept beside it. */
export function steadyContents(contents: ResourceContents): ResourceContents {
  steady.add(contents);
  return contents;
}

export function isSteady(contents: object): boolean {
  return steady.has(contents);
}
