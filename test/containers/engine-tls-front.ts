import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Place } from "../e2e/sandbox-client.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { settingsFor } from "./engine-runtime.ts";

/** What `dockerd --tlsverify` does, in front of the engine's socket. Arguments: the socket, the certificates, the port. */
const TLS_FRONT = `
const { readFileSync } = require("node:fs");
const [socket, folder, port] = process.argv.slice(2);
const read = (name) => readFileSync(folder + "/" + name);
const options = { ca: read("ca.pem"), cert: read("server.pem"), key: read("server-key.pem") };
const tls = { ...options, requestCert: true, rejectUnauthorized: true, allowHalfOpen: true };
require("node:tls").createServer(tls, (near) => {
  const far = require("node:net").connect({ path: socket, allowHalfOpen: true });
  near.pipe(far).pipe(near);
  for (const each of [near, far]) each.on("error", () => (near.destroy(), far.destroy()));
  near.on("close", () => far.destroy());
  far.on("close", () => near.destroy());
}).listen(Number(port), "127.0.0.1", function () { console.log(this.address().port); });
`;

export interface TlsFront {
  /** As an operator writes them, for the port that the front has. */
  settings(port: number): Readonly<Record<string, unknown>> & { readonly docker: Readonly<Record<string, string>> };
  command(port: number): string[];
}

export function makeTlsFront({ folder }: Place, engine: ContainerEngine): TlsFront {
  const certFolder = makeCertificates(folder);
  const script = join(folder, "front.cjs");
  writeFileSync(script, TLS_FRONT);
  return {
    command: (port) => [process.execPath, script, engine.host.slice("unix://".length), certFolder, String(port)],
    settings: (port) => ({
      ...settingsFor(engine),
      limits: "best-effort",
      docker: { host: `tcp://127.0.0.1:${port}`, certFolder },
    }),
  };
}

/** What an authority signs: for the engine, and for who uses it. */
export function makeCertificates(parent: string, name = "certificates"): string {
  const folder = join(parent, name);
  mkdirSync(folder);
  const openssl = (...args: string[]): unknown => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  openssl("req", "-x509", ...key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=authority");
  for (const owner of ["cert", "server"]) {
    const own = ["-keyout", owner === "cert" ? "key.pem" : "server-key.pem", "-out", `${owner}.csr`];
    openssl("req", ...key.slice(0, -2), ...own, "-subj", `/CN=${owner}`, "-addext", "subjectAltName=IP:127.0.0.1");
    const signed = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-copy_extensions", "copy"];
    openssl("x509", "-req", "-in", `${owner}.csr`, "-out", `${owner}.pem`, "-days", "2", ...signed);
  }
  return folder;
}

export async function startFront(front: TlsFront): Promise<number> {
  const [program = "", ...args] = front.command(0);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return Number(line.toString());
}
