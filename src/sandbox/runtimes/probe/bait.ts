import { createServer, type Server } from "node:net";

export interface Bait {
  readonly listeners: ReadonlyArray<readonly [family: string, address: string, port: number]>;
  close(): void;
}

/** Services of the host that must be out of reach. */
export async function openBait(abstractSocket: string): Promise<Bait> {
  const servers: Server[] = [];
  const listen = async (options: { host: string; port: number } | { path: string }): Promise<number | undefined> =>
    await new Promise((resolve) => {
      const server = createServer((socket) => socket.destroy()).unref();
      servers.push(server);
      // A machine without IPv6 has no such bait.
      server.once("error", () => resolve(undefined));
      server.listen(options, () => {
        const address = server.address();
        resolve(address !== null && typeof address === "object" ? address.port : 0);
      });
    });
  const port4 = await listen({ host: "127.0.0.1", port: 0 });
  const port6 = await listen({ host: "::1", port: 0 });
  await listen({ path: `\0${abstractSocket}` });
  return {
    listeners: [
      ...(port4 === undefined ? [] : [["AF_INET", "127.0.0.1", port4] as const]),
      ...(port6 === undefined ? [] : [["AF_INET6", "::1", port6] as const]),
    ],
    close: () => servers.forEach((server) => server.close()),
  };
}
