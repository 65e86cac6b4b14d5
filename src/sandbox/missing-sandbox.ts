import { OwlError } from "../errors/owl-error.ts";
import { serverIdOf } from "./session-name.ts";

/**
 * Why there is nothing under an id. The same words for one that never was, one that was destroyed and one of somebody
 * else: nothing is given away. An id that names another server says so itself. Its owner hears why a sandbox ended.
 */
export function missingSandbox(id: string, serverId: string | undefined, whyEnded?: string): OwlError {
  const home = serverIdOf(id);
  if (serverId !== undefined && home !== undefined && home !== serverId)
    return new OwlError("session_elsewhere", "the sandbox with this session_id is on another server");
  if (whyEnded !== undefined)
    return new OwlError("session_not_found", `the sandbox with this session_id has ended (${whyEnded})`, {
      hint: "call a tool with this session_id for a new, empty sandbox under the same id",
    });
  return new OwlError("session_not_found", "there is no sandbox with this session_id", {
    hint: "call sandbox_list for yours, sandbox_create for a new one, or leave session_id out",
  });
}
