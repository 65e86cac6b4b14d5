import { createServer } from "node:net";
import { Duplex } from "node:stream";
import { RelayMultiplexer } from "./multiplexer.ts";

/**
 * Runs inside a sandbox in which the proxy's socket cannot be mounted: `node egress-relay.mjs PORT`. It carries connections to
 * 127.0.0.1:PORT as frames on stdout and stdin.
 */
function main(port: number): void {
  const stream = Duplex.from({ readable: process.stdin, writable: process.stdout });
  const line = new RelayMultiplexer({ stream });
  const server = createServer({ allowHalfOpen: true }, (client) => line.open(client));
  server.on("error", (error) => {
    process.stderr.write(`the relay cannot listen: ${error.message}\n`);
    process.exit(1);
  });
  server.listen(port, "127.0.0.1", () => line.hello());
  void line.run().then(() => process.exit(0));
}

main(Number(process.argv[2]));
