import type { Result, ServerContext } from "@modelcontextprotocol/server";
import {
  RESOURCES_DIRECTORY_READ_METHOD,
  SKILLS_GET_METHOD,
  SKILLS_LIST_METHOD,
} from "@modelcontextprotocol/server/ext/skills";
import * as z from "zod";
import { callTool } from "./methods/call-tool.ts";
import { describeCapabilities } from "./methods/capabilities.ts";
import { complete } from "./methods/complete.ts";
import { listTools } from "./methods/list-tools.ts";
import { getPrompt, listPrompts } from "./methods/prompts.ts";
import { listResources, listTemplates, readResource } from "./methods/resources.ts";
import { getSkill, listSkills, readDirectory } from "./methods/skills.ts";
import { cancelTask, getTask, updateTask } from "./methods/tasks.ts";
import type { PeerServer } from "./peer-server.ts";

const ANY_PARAMS = z.looseObject({});
const TASK_PARAMS = z.looseObject({ taskId: z.string() });
const LIST_PARAMS = z.looseObject({ cursor: z.string().optional() });
const URI_PARAMS = z.looseObject({ uri: z.string() });
const DIRECTORY_PARAMS = z.looseObject({ uri: z.string(), cursor: z.string().optional() });

/** Ties each method of the protocol to the function that serves it. */
export function registerMethods(server: PeerServer): void {
  const { mcp } = server;
  server.setRequestHandler("tools/list", ({ params }, context) =>
    as(listTools(mcp, params?.cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler("tools/call", ({ params }, context) => as(callOrAdopt(server, params, context)));
  server.setRequestHandler("resources/list", ({ params }, context) =>
    as(listResources(mcp, params ?? {}, server.exchangeOf(context))),
  );
  server.setRequestHandler("resources/templates/list", ({ params }, context) =>
    as(listTemplates(mcp, params?.cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler("resources/read", ({ params }, context) => as(readOrAdopt(server, params, context)));
  server.setRequestHandler("resources/subscribe", async ({ params }, context) => {
    const exchange = server.exchangeOf(context);
    await mcp.pipeline.subscribe(params.uri, exchange);
    server.watched.set(params.uri, exchange.caller);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params }) => {
    server.watched.delete(params.uri);
    return {};
  });
  server.setRequestHandler("prompts/list", ({ params }, context) =>
    as(listPrompts(mcp, params?.cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler("prompts/get", ({ params }, context) =>
    as(getPrompt(mcp, params, server.exchangeOf(context))),
  );
  server.setRequestHandler("completion/complete", ({ params }, context) =>
    as(complete(mcp, params, server.exchangeOf(context))),
  );
  server.setRequestHandler("mcp.capabilities", { params: ANY_PARAMS }, (_params, context) =>
    as(describeCapabilities(mcp, server.exchangeOf(context))),
  );
  server.setRequestHandler("tasks/get", { params: TASK_PARAMS }, (params, context) =>
    as(getTask(mcp, params, server.exchangeOf(context))),
  );
  server.setRequestHandler("tasks/update", { params: TASK_PARAMS }, (params, context) =>
    as(updateTask(mcp, params, server.exchangeOf(context))),
  );
  server.setRequestHandler("tasks/cancel", { params: TASK_PARAMS }, (params, context) =>
    as(cancelTask(mcp, params, server.exchangeOf(context))),
  );
}

/** The skills extension, for revisions that have it. */
export function registerSkillMethods(server: PeerServer): void {
  const { mcp } = server;
  server.setRequestHandler(SKILLS_LIST_METHOD, { params: LIST_PARAMS }, ({ cursor }, context) =>
    as(listSkills(mcp, cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler(SKILLS_GET_METHOD, { params: URI_PARAMS }, ({ uri }, context) =>
    as(getSkill(mcp, uri, server.exchangeOf(context))),
  );
  server.setRequestHandler(RESOURCES_DIRECTORY_READ_METHOD, { params: DIRECTORY_PARAMS }, (params, context) =>
    as(readDirectory(mcp, params, server.exchangeOf(context))),
  );
}

function readOrAdopt(
  server: PeerServer,
  params: Parameters<typeof readResource>[1],
  context: ServerContext,
): Promise<Record<string, unknown>> {
  const { adopt } = server.factsOf(context);
  const exchange = server.exchangeOf(context);
  return adopt === undefined ? readResource(server.mcp, params, exchange) : adopt(exchange.conversation);
}

function callOrAdopt(
  server: PeerServer,
  params: Parameters<typeof callTool>[1],
  context: ServerContext,
): Promise<Record<string, unknown>> {
  const { adopt } = server.factsOf(context);
  const exchange = server.exchangeOf(context);
  return adopt === undefined ? callTool(server.mcp, params, exchange) : adopt(exchange.conversation);
}

/** Our results have the protocol's shape by construction, and tests hold them against its schemas; the SDK's types are far stricter than its wire. */
function as<R extends Result>(result: Record<string, unknown> | Promise<Record<string, unknown>>): R | Promise<R> {
  // oxlint-disable-next-line typescript/consistent-type-assertions -- see above: one place where the two meet
  return result as R | Promise<R>;
}
