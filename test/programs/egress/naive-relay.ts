import { connect, createServer, type Server } from "node:net";

/** What a proxy is without strict framing: it checks the first head and passes every byte behind it on as it comes. */
export function createNaiveRelay(address: string): Server {
  return createServer((client) => {
    client.on("error", () => {});
    client.once("data", (first) => {
      const upstream = connect(80, address);
      upstream.on("error", () => client.destroy());
      upstream.write(first.toString("latin1").replace(/ http:\/\/[^/]+/, " "), "latin1");
      client.pipe(upstream).pipe(client);
    });
  });
}
