import { connect, createServer, type Server } from "node:net";

interface EgressOptions {
  readonly socketPath: string;
  readonly port: number;
  readonly onDiagnostic: (text: string) => void;
}

/** Lets programs inside reach the proxy outside as `http://127.0.0.1:PORT`: bytes go to its socket as they are. */
export function startEgressForwarder(options: EgressOptions): Server {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const proxy = connect({ path: options.socketPath, allowHalfOpen: true });
    client.pipe(proxy).pipe(client);
    const close = (): void => {
      client.destroy();
      proxy.destroy();
    };
    client.on("error", close);
    proxy.on("error", close);
    client.on("close", () => proxy.destroy());
    proxy.on("close", () => client.destroy());
  });
  server.on("error", (error) => options.onDiagnostic(`the egress forwarder cannot listen: ${error.message}`));
  server.listen(options.port, "127.0.0.1");
  return server;
}
