import type { Result, ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { callTool } from "./methods/call-tool.ts";
import { describeCapabilities } from "./methods/capabilities.ts";
import { complete } from "./methods/complete.ts";
import { listTools } from "./methods/list-tools.ts";
import { getPrompt, listPrompts } from "./methods/prompts.ts";
import { listResources, listTemplates, readResource } from "./methods/resources.ts";
import { cancelTask, getTask, updateTask } from "./methods/tasks.ts";
import type { PeerServer } from "./peer-server.ts";

const ANY_PARAMS = z.looseObject({});
const TASK_PARAMS = z.looseObject({ taskId: z.string() });

/** Ties each method of the protocol to the function that serves it. */
export function registerMethods(server: PeerServer): void {
  const { mcp } = server;
  server.setRequestHandler("tools/list", ({ params }, context) =>
    as(listTools(mcp, params?.cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler("tools/call", ({ params }, context) => as(callOrAdopt(server, params, context)));
  server.setRequestHandler("resources/list", ({ params }, context) =>
    as(listResources(mcp, params?.cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler("resources/templates/list", ({ params }, context) =>
    as(listTemplates(mcp, params?.cursor, server.exchangeOf(context))),
  );
  server.setRequestHandler("resources/read", ({ params }, context) =>
    as(readResource(mcp, params.uri, server.exchangeOf(context))),
  );
  server.setRequestHandler("resources/subscribe", ({ params }, context) => {
    const { caller } = server.exchangeOf(context);
    mcp.pipeline.assertSubscribable(params.uri, caller);
    server.watched.set(params.uri, caller);
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
