/** The `session_id` of arguments that their schema has checked already. */
export function sessionIdOf(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !("session_id" in input)) return undefined;
  return typeof input.session_id === "string" ? input.session_id : undefined;
}
