import { createServer } from "node:http";
import { announce } from "./listening.mjs";

// Takes what a server that traces sends, and forgets it.
const server = createServer((request, response) => {
  request.resume().on("end", () => response.end("{}"));
});
server.listen(0, "127.0.0.1", () => announce(server));
