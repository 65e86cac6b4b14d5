import { posix } from "node:path";

/**
 * The normal form of a path in a sandbox, links not resolved: relative where it is inside the workspace, without `.`, `..` and
 * repeated slashes. The workspace itself is the empty text.
 */
export function workspaceRelative(path: string, workspacePath: string): string {
  const absolute = posix.resolve(workspacePath, path);
  const inside = posix.relative(workspacePath, absolute);
  return inside === ".." || inside.startsWith("../") ? absolute : inside;
}

/** The requested path for the first line of a result. The path that the guest returns is not trusted for that. */
export function askedPath(path: string, { workspacePath }: { readonly workspacePath: string }): string {
  return workspaceRelative(path, workspacePath) || ".";
}

/** Puts the paths in a tool's arguments into their normal form, so that policy rules match every spelling. */
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
