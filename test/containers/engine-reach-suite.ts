import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { connectInNetwork } from "../e2e/sandbox-network-world.ts";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { settingsFor } from "./engine-runtime.ts";

const PYTHON = (host: string): string => `
import urllib.request, urllib.error
try: print(urllib.request.urlopen("http://${host}/hello.txt").read())
except urllib.error.HTTPError as error: print(error.read())
`;
const NODE = (host: string): string => `await (await fetch("http://${host}/hello.txt")).text()`;

/** How containers reach the network. */
export function defineNetworkTest(engine: () => ContainerEngine): void {
  test("programs in a container reach an allowed host through the proxy, and no other", async () => {
    const settings = { sandbox: settingsFor(engine()) };
    const client = await connectInNetwork(makePlace(), { allow: ["good.test"], hasCable: true, settings });
    onTestFinished(async () => await client.close());
    const inside = await openInside(client);
    expect(await inside.sh("ls /sys/class/net")).toBe("lo\n");
    expect(await inside.python(PYTHON("good.test"))).toContain("hello from outside");
    expect(await inside.python(PYTHON("bad.test"))).toContain("bad.test:80 is not in network.allow");
    const fetched = await inside.call("code_run", { code: NODE("good.test"), language: "node" });
    expect(textOf(fetched)).toContain("hello from outside");
  });
}

/** How the server reaches an engine elsewhere. */
export function defineTlsTest(engine: () => ContainerEngine): void {
  test("an engine on another machine is reached with TLS, and with nothing less", async () => {
    const place = makePlace();
    const certFolder = makeCertificates(place.folder);
    const port = await serveTls(engine(), certFolder);
    const remote = { ...settingsFor(engine()), limits: "best-effort", docker: { host: `tcp://127.0.0.1:${port}` } };
    const env = { DOCKER_CERT_PATH: certFolder };
    const secure = new Server(place, { sandbox: remote }, env);
    const inside = await openInside(await connectHttp(await secure.url()));
    expect((await inside.call("code_run", { code: "6 * 7" })).structuredContent).toMatchObject({ value: "42" });
    await secure.stop();
    const plain = new Server(makePlace(), { sandbox: remote });
    const client = await connectHttp(await plain.url());
    await expect(call(client, "sandbox_create")).rejects.toThrow(/container engine .* cannot be reached/);
    await plain.stop();
  });
}

function makeCertificates(parent: string): string {
  const folder = join(parent, "certificates");
  mkdirSync(folder);
  const openssl = (...args: string[]): unknown => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  openssl("req", "-x509", ...key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=authority");
  for (const name of ["cert", "server"]) {
    const own = ["-keyout", name === "cert" ? "key.pem" : "server-key.pem", "-out", `${name}.csr`];
    openssl("req", ...key.slice(0, -2), ...own, "-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1");
    const signed = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-copy_extensions", "copy"];
    openssl("x509", "-req", "-in", `${name}.csr`, "-out", `${name}.pem`, "-days", "2", ...signed);
  }
  return folder;
}

/** What `dockerd --tlsverify` does, in front of the engine's socket. */
async function serveTls({ host }: ContainerEngine, folder: string): Promise<number> {
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  const options = { ca: read("ca.pem"), cert: read("server.pem"), key: read("server-key.pem") };
  const server = createServer(
    { ...options, requestCert: true, rejectUnauthorized: true, allowHalfOpen: true },
    (near) => {
      const far = connect({ path: host.slice("unix://".length), allowHalfOpen: true });
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) socket.on("error", () => (near.destroy(), far.destroy()));
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
