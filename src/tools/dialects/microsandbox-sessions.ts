import type { HandlerDefinition } from "../../capability/define.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import { sessionIdOf } from "../session-id.ts";
import type { ToolServices } from "../tool-services.ts";

const OPTIONAL_SESSION: JsonSchema = {
  type: "object",
  properties: { session_id: { type: "string", description: "Optional session ID" } },
};

const REQUIRED_SESSION: JsonSchema = {
  type: "object",
  properties: { session_id: { type: "string", description: "ID of the session to stop" } },
  required: ["session_id"],
};

export function getSessions({ sandboxes }: ToolServices): HandlerDefinition {
  const name = "get_sessions";
  return {
    name,
    title: "Get sessions",
    description: "Get information about your active sandbox sessions. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "exec",
    input: OPTIONAL_SESSION,
    run: async (input, context) => {
      const asked = sessionIdOf(input);
      const sessions = sandboxes
        .list(context)
        .filter(({ id }) => asked === undefined || id === asked)
        .map(({ id, state, template, flavor, createdAtMs, lastUsedAtMs }) => ({
          session_id: id,
          template,
          flavor,
          status: state,
          created_at: new Date(createdAtMs).toISOString(),
          last_accessed: new Date(lastUsedAtMs).toISOString(),
        }));
      return { content: [{ type: "text", text: JSON.stringify({ sessions }) }], isError: false, sessions };
    },
  };
}

export function stopSession({ sandboxes }: ToolServices): HandlerDefinition {
  const name = "stop_session";
  return {
    name,
    title: "Stop a session",
    description: "Stop a sandbox session with everything that runs in it, and remove its files. This cannot be undone.",
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    scope: "exec",
    input: REQUIRED_SESSION,
    run: async (input, context) => {
      const { id } = await sandboxes.destroy(context, sessionIdOf(input));
      const text = JSON.stringify({ session_id: id, success: true });
      return { content: [{ type: "text", text }], isError: false, session_id: id, success: true };
    },
  };
}

export function getVolumePath({ volumes, limits }: ToolServices): HandlerDefinition {
  const name = "get_volume_path";
  return {
    name,
    title: "Get volume mappings",
    description: "Get the folders of the host that are visible in every sandbox, and where. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "workspace",
    input: OPTIONAL_SESSION,
    run: async () => {
      const mappings = volumes.map(({ hostPath, guestPath, isReadOnly }) => ({
        host_path: hostPath,
        container_path: guestPath,
        read_only: isReadOnly,
      }));
      const facts = { volume_mappings: mappings, workspace: limits.workspacePath };
      return { content: [{ type: "text", text: JSON.stringify(facts) }], isError: false, ...facts };
    },
  };
}
