/** The floor: parse a request, answer it, know nothing else. Usage: raw.mjs http|stdio */
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { announce } from "./listening.mjs";

function answer(text) {
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return undefined;
  const result =
    method === "initialize"
      ? { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "raw", version: "1" } }
      : { content: [{ type: "text", text: params.arguments.text }] };
  return JSON.stringify({ jsonrpc: "2.0", id, result });
}

if (process.argv[2] === "stdio") {
  createInterface({ input: process.stdin }).on("line", (line) => {
    const text = answer(line);
    if (text !== undefined) process.stdout.write(`${text}\n`);
  });
} else {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const text = body === "" ? undefined : answer(body);
      if (text === undefined) {
        response.writeHead(202).end();
      } else {
        response
          .writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
          .end(text);
      }
    });
  });
  server.listen(0, "127.0.0.1", () => announce(server));
}
