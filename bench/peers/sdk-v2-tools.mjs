/** The official SDK, version 2, as its documentation serves it, with as many tools as the first argument says. */
import { createServer } from "node:http";
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { announce } from "./listening.mjs";

const count = Number(process.argv[2]);

function createToolServer() {
  const server = new McpServer({ name: "sdk-v2", version: "1.0.0" });
  for (let index = 0; index < count; index += 1) {
    server.registerTool(
      `tool_${index}`,
      {
        description: `Looks for orders, number ${index}.`,
        inputSchema: z.object({
          text: z.string().min(2).describe("Words to look for."),
          limit: z.number().min(1).max(50).default(10),
        }),
        outputSchema: z.object({ found: z.array(z.string()), total: z.number() }),
      },
      ({ text }) => ({ content: [{ type: "text", text }], structuredContent: { found: [text], total: 1 } }),
    );
  }
  return server;
}

const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();
const serve = toNodeHandler(createMcpHandler(createToolServer));
const server = createServer((request, response) => {
  if (isHostAllowed(request, response) && isOriginAllowed(request, response)) void serve(request, response);
});
server.listen(0, "127.0.0.1", () => announce(server));
