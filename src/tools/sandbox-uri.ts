/** `sandbox://{session_id}/{path}`: a relative path is in the workspace, an absolute one keeps its leading slash. */
export function sandboxUri(sandboxId: string, path: string): string {
  return `sandbox://${sandboxId}/${path.split("/").map(encodeURIComponent).join("/")}`;
}
