import { posix } from "node:path";

/**
 * The path as the guest reads it, short of links: relative to the workspace wherever it can be, without `.`, `..` and repeated
 * slashes. The workspace itself is the empty text.
 */
export function workspaceRelative(path: string, workspacePath: string): string {
  const absolute = posix.resolve(workspacePath, path);
  const inside = posix.relative(workspacePath, absolute);
  return inside === ".." || inside.startsWith("../") ? absolute : inside;
}

/** For the first line of a result: the path that was asked for, since what a guest calls it is the guest's word. */
export function askedPath(path: string, { workspacePath }: { readonly workspacePath: string }): string {
  return workspaceRelative(path, workspacePath) || ".";
}

/** Arguments with each path that they hold in its one form, for rules. */
export function withRelativePaths(
  names: readonly string[],
  workspacePath: string,
): (args: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> {
  const toRelative = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(toRelative);
    return typeof value === "string" ? workspaceRelative(value, workspacePath) || "." : value;
  };
  return (args) => {
    const changed: Record<string, unknown> = { ...args };
    for (const name of names) if (name in args) changed[name] = toRelative(args[name]);
    return changed;
  };
}

/** `sandbox://{session_id}/{path}`: a relative path is in the workspace, an absolute one keeps its leading slash. */
export function sandboxUri(sandboxId: string, path: string): string {
  return `sandbox://${sandboxId}/${path.split("/").map(encodeURIComponent).join("/")}`;
}
