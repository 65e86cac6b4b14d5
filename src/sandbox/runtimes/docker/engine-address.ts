import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SecureContextOptions } from "node:tls";
import { OwlError } from "../../../errors/owl-error.ts";

const DEFAULT_SOCKET = "/var/run/docker.sock";
const TLS_PORT = 2376;
const PLAIN_PORT = 2375;

/** The address of an engine. */
export type EngineAddress =
  | { readonly kind: "socket"; readonly path: string }
  | {
      readonly kind: "tcp";
      readonly host: string;
      readonly port: number;
      readonly tls: SecureContextOptions | undefined;
    };

/** Parses `DOCKER_HOST` and `DOCKER_CERT_PATH`. Access to an engine is access to its machine, so a network address needs TLS. */
export function parseEngineAddress(host: string, certFolder: string): EngineAddress {
  if (host === "") return { kind: "socket", path: DEFAULT_SOCKET };
  if (host.startsWith("/")) return { kind: "socket", path: host };
  if (host.startsWith("unix://")) return { kind: "socket", path: host.slice("unix://".length) };
  const text = host.replace(/^(tcp|https?):/, "http:");
  const url = text.startsWith("http://") && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) {
    throw unusable(`"${host}" is not a usable address of an engine`, "Write unix:///path or tcp://host:2376.");
  }
  const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (certFolder === "") {
    if (!/^(localhost|127(\.\d+){3}|::1)$/.test(name)) {
      throw unusable(
        `the engine at ${url.host} would be used without TLS, which hands its machine to the network`,
        "Set sandbox.docker.certFolder (DOCKER_CERT_PATH) to a folder with ca.pem, cert.pem and key.pem.",
      );
    }
    return { kind: "tcp", host: name, port: Number(url.port || PLAIN_PORT), tls: undefined };
  }
  return { kind: "tcp", host: name, port: Number(url.port || TLS_PORT), tls: readCertificates(certFolder) };
}

export function describeAddress(address: EngineAddress): string {
  if (address.kind === "socket") return address.path;
  return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
}

function readCertificates(folder: string): SecureContextOptions {
  try {
    const [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map((name) => readFileSync(join(folder, name)));
    return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw unusable(
      `the certificates for the engine cannot be read: ${reason}`,
      "Put ca.pem, cert.pem and key.pem into the folder that sandbox.docker.certFolder (DOCKER_CERT_PATH) names.",
    );
  }
}

function unusable(message: string, hint: string): OwlError {
  return new OwlError("sandbox_unavailable", message, { hint });
}
