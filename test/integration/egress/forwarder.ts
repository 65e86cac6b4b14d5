import { connect, createServer, type AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** What stands inside a sandbox in front of the door: a port on loopback, each connection carried to the socket. */
export async function startForwarder(socketPath: string): Promise<number> {
  const server = createServer((client) => {
    const listener = connect(socketPath);
    client.on("error", () => listener.destroy());
    listener.on("error", () => client.destroy());
    client.pipe(listener).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
