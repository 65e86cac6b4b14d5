import type { KeyObject } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface JwksServer {
  readonly url: string;
  /** How often the key set was asked for. */
  readonly requests: number;
  serve(keys: Readonly<Record<string, KeyObject>>): void;
  answerWith(answer: (response: ServerResponse) => void): void;
  close(): Promise<void>;
}

/** An issuer's key endpoint on loopback. */
export async function startJwksServer(): Promise<JwksServer> {
  let requests = 0;
  let answer = notFound;
  const server = createServer((_, response) => {
    requests += 1;
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/jwks.json`,
    get requests() {
      return requests;
    },
    serve: (keys) => {
      const document = {
        keys: Object.entries(keys).map(([kid, key]) => Object.assign(key.export({ format: "jwk" }), { kid })),
      };
      answer = (response) => void response.setHeader("content-type", "application/json").end(JSON.stringify(document));
    },
    answerWith: (next) => {
      answer = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function notFound(response: ServerResponse): void {
  response.writeHead(404).end();
}
