import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connectInNetwork } from "../e2e/sandbox-network-world.ts";
import { call, connectHttp, makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { settingsFor } from "./engine-runtime.ts";

const PYTHON = (host: string): string => `
import urllib.request, urllib.error
try: print(urllib.request.urlopen("http://${host}/hello.txt").read())
except urllib.error.HTTPError as error: print(error.read())
`;
const NODE = (host: string): string => `await (await fetch("http://${host}/hello.txt")).text()`;

const FRONT_PORT = 2376;
const LARGE_BYTES = 30_000_000;
/** More than any window at once, by several connections. */
const DOWNLOADS = `
import urllib.request, concurrent.futures
read = lambda _: len(urllib.request.urlopen("http://good.test/large.bin").read())
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(set(pool.map(read, range(4))))
`;

/** What code inside, which has the same user, can do to the relay. */
const RELAY_ATTACKS = [
  ["pkill -KILL -f '[e]gress-relay.mjs'", "ended"],
  ["head -c 4000 /dev/zero | tr '\\0' '\\377' > /proc/$(pgrep -f '[e]gress-relay.mjs')/fd/1", "carries rubbish"],
] as const;

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

interface TlsFront {
  /** As an operator writes them, for the port that the front has. */
  settings(port: number): Record<string, unknown>;
  command(port: number): string[];
}

function makeTlsFront({ folder }: Place, engine: ContainerEngine): TlsFront {
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

/** How the server reaches an engine elsewhere, and how sandboxes there reach the network. */
export function defineTlsTests(engine: () => ContainerEngine): void {
  test("an engine on another machine is reached with TLS, and with nothing less", async () => {
    const place = makePlace();
    const front = makeTlsFront(place, engine());
    const port = await startFront(front);
    const secure = new Server(place, { sandbox: front.settings(port) });
    const inside = await openInside(await connectHttp(await secure.url()));
    expect((await inside.call("code_run", { code: "6 * 7" })).structuredContent).toMatchObject({ value: "42" });
    await secure.stop();
    const docker = { host: `tcp://127.0.0.1:${port}` };
    const plain = new Server(makePlace(), { sandbox: { ...front.settings(port), docker } });
    const client = await connectHttp(await plain.url());
    await expect(call(client, "sandbox_create")).rejects.toThrow(/container engine .* cannot be reached/);
    await plain.stop();
  });

  test("sandboxes on another machine reach an allowed host through the server's own proxy, and no other", async () => {
    const place = makePlace();
    const front = makeTlsFront(place, engine());
    const [program, ...args] = front.command(FRONT_PORT).map((word) => `'${word}'`);
    const more = `
      setpriv --pdeathsig KILL ${program} ${args.join(" ")} > /dev/null 2>&1 < /dev/null &
      until (exec 3<> /dev/tcp/127.0.0.1/${FRONT_PORT}) 2> /dev/null; do sleep 0.02; done
    `;
    const settings = { sandbox: front.settings(FRONT_PORT) };
    const client = await connectInNetwork(place, { allow: ["good.test"], hasCable: true, settings, more });
    onTestFinished(async () => await client.close());
    writeFileSync(join(place.folder, "site", "large.bin"), Buffer.alloc(LARGE_BYTES, "owl"));
    const inside = await openInside(client);
    expect(await inside.sh("ls /sys/class/net; ls /run/owlclaw 2> /dev/null")).toBe("lo\n");
    expect(await inside.python(PYTHON("good.test"))).toContain("hello from outside");
    expect(await inside.python(PYTHON("bad.test"))).toContain("bad.test:80 is not in network.allow");
    const fetched = await inside.call("code_run", { code: NODE("good.test"), language: "node" });
    expect(textOf(fetched)).toContain("hello from outside");
    expect(await inside.python(DOWNLOADS)).toBe(`{${LARGE_BYTES}}\n`);
    // Whoever ends the relay has no network any more, and gets a new one with the sandbox's next start.
    for (const [attack, reason] of RELAY_ATTACKS) {
      const answer = textOf(await inside.call("shell_exec", { command: `${attack}; sleep 60` }));
      expect(answer).toContain(`the sandbox ended while the call ran: the line of the network ${reason}`);
      expect(await inside.python(PYTHON("good.test"))).toContain("hello from outside");
    }
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

async function startFront(front: TlsFront): Promise<number> {
  const [program = "", ...args] = front.command(0);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return Number(line.toString());
}
