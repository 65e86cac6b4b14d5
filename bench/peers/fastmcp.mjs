/** fastmcp. Usage: fastmcp.mjs stateful|stateless|stdio */
import { createServer } from "node:net";
import { FastMCP } from "fastmcp";
import { z } from "zod";

const mode = process.argv[2];
// A line of log per request would be measured too, and on stdio it would stand among the answers.
const logger = { debug() {}, error() {}, info() {}, log() {}, warn() {} };
const server = new FastMCP({ name: "fastmcp", version: "1.0.0", ping: { enabled: false }, logger });
server.addTool({
  name: "echo",
  description: "Answers with the text it got",
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => Promise.resolve(text),
});

if (mode === "stdio") {
  await server.start({ transportType: "stdio" });
} else {
  const port = await freePort();
  await server.start({
    transportType: "httpStream",
    httpStream: { host: "127.0.0.1", port, endpoint: "/mcp", stateless: mode === "stateless" },
  });
  process.stderr.write(`${JSON.stringify({ message: "listening", url: `http://127.0.0.1:${port}` })}\n`);
}

/** fastmcp does not say which port it got, so it must be told one. */
async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
