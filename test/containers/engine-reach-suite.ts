import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connectInNetwork } from "../e2e/sandbox-network-world.ts";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { settingsFor } from "./engine-runtime.ts";
import { makeCertificates, makeTlsFront, startFront } from "./engine-tls-front.ts";

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
  ["head -c 4000 /dev/zero | tr '\\0' '\\377' > /proc/$(pgrep -f '[e]gress-relay.mjs')/fd/1", "is malformed"],
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

  test.each([
    ["an engine of another authority is not trusted", "ca.pem", /cannot be reached: .*certificate/],
    ["a client of another authority is not served", "cert.pem key.pem", /cannot be reached/],
    ["a client without a certificate does not start", "", /certificates for the engine cannot be read: .*cert\.pem/],
  ])("%s, and the hint names the folder of the certificates", async (_what, foreign, message) => {
    const place = makePlace();
    const front = makeTlsFront(place, engine());
    const settings = front.settings(await startFront(front));
    const mine = join(place.folder, "certificates");
    const other = makeCertificates(place.folder, "of-others");
    const certFolder = join(place.folder, "mixed");
    mkdirSync(certFolder);
    for (const name of foreign === "" ? ["ca.pem"] : ["ca.pem", "cert.pem", "key.pem"])
      copyFileSync(join(foreign.includes(name) ? other : mine, name), join(certFolder, name));
    const docker = { ...settings.docker, certFolder };
    const server = new Server(place, { sandbox: { ...settings, docker } });
    const refused = call(await connectHttp(await server.url()), "sandbox_create");
    await expect(refused).rejects.toMatchObject({
      message: expect.stringMatching(message) as unknown,
      data: { hint: expect.stringContaining("sandbox.docker.certFolder") as unknown },
    });
    expect(await server.stop()).toBe(0);
  });

  test("folders of this machine are not looked for on another: volumes and built templates are refused", async () => {
    const place = makePlace();
    const front = makeTlsFront(place, engine());
    const settings = front.settings(await startFront(front));
    const built = join(place.dataFolder, "templates", "team");
    for (const name of ["python", "node_modules"]) mkdirSync(join(built, name), { recursive: true });
    const manifest = { language: "python", packages: [], sizeBytes: 0, builtAt: new Date(0).toISOString() };
    writeFileSync(join(built, "template.json"), JSON.stringify(manifest));
    const server = new Server(place, { sandbox: settings });
    const client = await connectHttp(await server.url());
    await expect(call(client, "sandbox_create", { template: "team" })).rejects.toMatchObject({
      message: expect.stringContaining("it cannot show the template team, which was built here") as unknown,
      data: { kind: "sandbox_unavailable", hint: expect.stringContaining("sandbox.templates.team.image") as unknown },
    });
    expect(await (await openInside(client)).sh("echo served")).toBe("served\n");
    await server.stop();
    const shown = new Server(makePlace(), { sandbox: { ...settings, volumes: [`${place.folder}:/data`] } });
    const refused = call(await connectHttp(await shown.url()), "sandbox_create");
    await expect(refused).rejects.toMatchObject({
      message: expect.stringContaining("it cannot show volumes") as unknown,
      data: { kind: "sandbox_unavailable", hint: expect.stringContaining("Empty sandbox.volumes") as unknown },
    });
    await shown.stop();
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
    // A sandbox that ends its relay has no network until its next start.
    for (const [attack, reason] of RELAY_ATTACKS) {
      const answer = textOf(await inside.call("shell_exec", { command: `${attack}; sleep 60` }));
      expect(answer).toContain(`the sandbox ended while the call ran: the network stream ${reason}`);
      expect(await inside.python(PYTHON("good.test"))).toContain("hello from outside");
    }
  });
}

/** Podman reads a file that the server cannot put on its machine. */
export function defineRemotePodmanTest(engine: () => ContainerEngine): void {
  test("Podman on another machine is refused in clear words", async () => {
    const place = makePlace();
    const front = makeTlsFront(place, engine());
    const server = new Server(place, { sandbox: front.settings(await startFront(front)) });
    const refused = call(await connectHttp(await server.url()), "sandbox_create");
    await expect(refused).rejects.toMatchObject({
      message: expect.stringMatching(/is reached over the network.*Podman reads the filter/) as unknown,
      data: { kind: "sandbox_unavailable", hint: expect.stringContaining("unix socket") as unknown },
    });
    expect(await server.stop()).toBe(0);
  });
}
