/** The official SDK, version 1. Usage: sdk-v1.mjs stateful|stateless|stdio */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { announce } from "./listening.mjs";

function createEchoServer() {
  const server = new McpServer({ name: "sdk-v1", version: "1.0.0" });
  server.registerTool(
    "echo",
    { description: "Answers with the text it got", inputSchema: { text: z.string() } },
    ({ text }) => ({
      content: [{ type: "text", text }],
    }),
  );
  return server;
}

const sessions = new Map();

async function serveStateful(request, response) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known !== undefined) return known.handleRequest(request, response);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await createEchoServer().connect(transport);
  return transport.handleRequest(request, response);
}

async function serveStateless(request, response) {
  const server = createEchoServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

const mode = process.argv[2];
if (mode === "stdio") {
  await createEchoServer().connect(new StdioServerTransport());
} else {
  const serve = mode === "stateful" ? serveStateful : serveStateless;
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, "127.0.0.1", () => announce(server));
}
