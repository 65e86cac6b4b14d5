import { generateKeyPairSync } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { selfSignedCertificatePem } from "../../unit/auth/self-signed-certificate.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface Site {
  readonly port: number;
  /** How many connections it has had. */
  readonly connections: () => number;
}

/** A web site on loopback. The proxy is told to find it under a name of its own. */
export async function startSite(answer: Answer, options: { isSecure?: boolean } = {}): Promise<Site> {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = keys.privateKey.export({ type: "pkcs8", format: "pem" });
  const server: Server =
    options.isSecure === true
      ? createSecureServer({ key, cert: selfSignedCertificatePem(keys) }, answer)
      : createServer(answer);
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}
