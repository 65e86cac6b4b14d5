/** The official SDK, version 2. Usage: sdk-v2.mjs handler|stateful|stdio */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { announce } from "./listening.mjs";

function createEchoServer() {
  const server = new McpServer({ name: "sdk-v2", version: "1.0.0" });
  server.registerTool(
    "echo",
    { description: "Answers with the text it got", inputSchema: z.object({ text: z.string() }) },
    ({ text }) => ({ content: [{ type: "text", text }] }),
  );
  return server;
}

const sessions = new Map();

async function serveStateful(request, response) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known !== undefined) return known.handleRequest(request, response);
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  await createEchoServer().connect(transport);
  return transport.handleRequest(request, response);
}

const mode = process.argv[2];
if (mode === "stdio") {
  serveStdio(createEchoServer);
} else {
  const isHostAllowed = localhostHostValidation();
  const isOriginAllowed = localhostOriginValidation();
  const serve = mode === "stateful" ? serveStateful : toNodeHandler(createMcpHandler(createEchoServer));
  const server = createServer((request, response) => {
    if (isHostAllowed(request, response) && isOriginAllowed(request, response)) void serve(request, response);
  });
  server.listen(0, "127.0.0.1", () => announce(server));
}
