import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { chmod, cp, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { request as httpsRequest } from "node:https";
import { connect as netConnect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { loadConfig } from "../../src/config/load.ts";
import { asOrdinaryUser } from "../setup/ordinary-user.ts";
import { createTokenKeys } from "../escape/forge-token.ts";
import { eventually } from "../escape/http-client.ts";
import { runCli } from "./cli-process.ts";
import { type HttpServerProcess, spawnServer, startHttp } from "../escape/server.ts";
import { attackedServerAuth } from "../escape/token-attacks.ts";
import { selfSignedCertificatePem } from "../unit/auth/self-signed-certificate.ts";

let folder: string;
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-tls-"));
  for (const name of ["first", "second"]) makePair(name);
});
afterAll(async () => {
  await Promise.all(running.map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
});

function makePair(name: string): void {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(join(folder, `${name}.key`), privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  writeFileSync(join(folder, `${name}.crt`), selfSignedCertificatePem({ publicKey, privateKey, commonName: name }));
}

/** A pair of files for one test, at first with the first certificate. */
async function pairOf(test: string): Promise<{ certFile: string; keyFile: string }> {
  const pair = { certFile: join(folder, `${test}.crt`), keyFile: join(folder, `${test}.key`) };
  await put("first", pair);
  return pair;
}

/** Renewal as tools do it: each file is replaced in one step. */
async function put(name: string, { certFile, keyFile }: { certFile: string; keyFile: string }): Promise<void> {
  await cp(join(folder, `${name}.key`), `${keyFile}.new`);
  await cp(join(folder, `${name}.crt`), `${certFile}.new`);
  await rename(`${keyFile}.new`, keyFile);
  await rename(`${certFile}.new`, certFile);
}

async function start(tls: object, config: object = {}): Promise<HttpServerProcess> {
  const server = await startHttp({ config: { http: { tls }, ...config } });
  running.push(server);
  return server;
}

/** What the image of the server runs to learn whether it is well; by its exit code. */
async function healthCheck(port: number): Promise<unknown> {
  const dockerfile = await readFile(join(import.meta.dirname, "../../deploy/docker/server.Dockerfile"), "utf8");
  const command = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? "";
  const [, ...args] = JSON.parse(command) as string[];
  const [code] = await once(spawn(process.execPath, args, { env: { MCP_SERVER_PORT: String(port) } }), "exit");
  return code;
}

/** The name in the certificate that a new connection is shown. */
async function subjectOf({ port }: HttpServerProcess): Promise<string> {
  const socket = tlsConnect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

async function echo({ port }: HttpServerProcess, ca: Buffer): Promise<string> {
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "echo", arguments: { text: "safe" } },
  });
  const request = httpsRequest({
    port,
    host: "127.0.0.1",
    servername: "localhost",
    ca,
    path: "/mcp",
    method: "POST",
    agent: false,
  });
  request.end(body);
  const [response] = await once(request, "response");
  let text = "";
  for await (const chunk of response) text += String(chunk);
  return JSON.parse(text).result.content[0].text;
}

// Side by side: most of the time goes into waiting until the server looks at its files again.
describe.concurrent("[004-R3.10] TLS", { timeout: 120_000 }, () => {
  test("serves HTTPS with the configured certificate, which a client can verify", async () => {
    const server = await start(await pairOf("serve"));
    expect(server.origin).toBe(`https://127.0.0.1:${server.port}`);
    expect(await echo(server, await readFile(join(folder, "first.crt")))).toBe("safe");
    await expect(echo(server, await readFile(join(folder, "second.crt")))).rejects.toThrow(/self-signed/);
  });

  test("answers no plain HTTP on the same port, and stays up", async () => {
    const server = await start(await pairOf("plain"));
    const socket = netConnect(server.port, "127.0.0.1");
    let received = "";
    socket.on("data", (chunk) => (received += chunk.toString("latin1"))).on("error", () => undefined);
    socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "close");
    expect(received).not.toContain('"status"');
    expect(await subjectOf(server)).toBe("first");
  });

  test.each(["TLSv1", "TLSv1.1"] as const)("refuses %s", async (version) => {
    const server = await start(await pairOf(version));
    const socket = tlsConnect({
      port: server.port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      minVersion: version,
      maxVersion: version,
      ciphers: "DEFAULT@SECLEVEL=0",
    });
    await expect(once(socket, "secureConnect")).rejects.toThrow(
      /protocol version|unsupported protocol|no protocols|alert|ECONNRESET/i,
    );
  });

  test("the challenge of a server with TLS points to https", async () => {
    const server = await start(await pairOf("challenge"), { auth: attackedServerAuth("secret", createTokenKeys()) });
    const request = httpsRequest({
      port: server.port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      path: "/mcp",
      agent: false,
    });
    request.end();
    const [response] = await once(request, "response");
    expect(response.headers["www-authenticate"]).toContain(`resource_metadata="https://127.0.0.1:${server.port}/`);
    response.destroy();
  });

  test("a new certificate is used for new connections without a restart; open connections go on", async () => {
    const pair = await pairOf("reload");
    const server = await start(pair);
    const open = tlsConnect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(open, "secureConnect");
    await put("second", pair);
    expect(
      await eventually(
        () => subjectOf(server),
        (name) => name === "second",
      ),
    ).toBe("second");
    open.write("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    const [chunk] = await once(open, "data");
    expect(String(chunk)).toContain("200 OK");
    expect(server.child.exitCode).toBeNull();
  });

  test("SIGHUP has a new certificate in use before it is told that all is reloaded", async () => {
    const pair = await pairOf("signal");
    const server = await start(pair);
    await server.logged("server started");
    await put("second", pair);
    server.child.kill("SIGHUP");
    await server.logged('"reloaded"');
    expect(await subjectOf(server)).toBe("second");
    expect(server.log()).toMatch(/"certificate reloaded"[\s\S]*"reloaded"/);
  });

  test("a pair that does not fit is not taken: the old one stays, and the log says so", async () => {
    const pair = await pairOf("mismatch");
    const server = await start(pair);
    await cp(join(folder, "second.crt"), pair.certFile);
    await server.logged("the old one stays");
    expect(await subjectOf(server)).toBe("first");
    await cp(join(folder, "second.key"), pair.keyFile);
    expect(
      await eventually(
        () => subjectOf(server),
        (name) => name === "second",
      ),
    ).toBe("second");
  });

  test.each([
    ["rubbish", (file: string) => writeFile(file, "rubbish")],
    ["nothing", (file: string) => writeFile(file, "")],
    ["no file at all", (file: string) => rm(file)],
  ])("a certificate that becomes %s is not taken: the old one stays", async (name, damage) => {
    const pair = await pairOf(`damage ${name}`);
    const server = await start(pair);
    await damage(pair.certFile);
    await server.logged("the old one stays");
    expect(await subjectOf(server)).toBe("first");
    expect(server.log()).not.toContain("PRIVATE KEY");
  });

  test("a renewal through symbolic links is seen", async () => {
    const pair = { certFile: join(folder, "live.crt"), keyFile: join(folder, "live.key") };
    const point = async (name: string): Promise<void> => {
      for (const [file, kind] of [
        [pair.keyFile, "key"],
        [pair.certFile, "crt"],
      ] as const) {
        await symlink(join(folder, `${name}.${kind}`), `${file}.new`);
        await rename(`${file}.new`, file);
      }
    };
    await point("first");
    const server = await start(pair);
    await point("second");
    expect(
      await eventually(
        () => subjectOf(server),
        (name) => name === "second",
      ),
    ).toBe("second");
  });
});

describe.concurrent("[004-R3.10] [000-R7.5] a certificate that cannot be used stops the start", () => {
  async function failure(tls: object): Promise<{ code: number | null; log: string }> {
    const server = await spawnServer({ config: { http: { tls } }, args: ["--port", "0"] });
    running.push(server);
    return { code: await server.exited, log: server.log() };
  }

  test.each([
    [
      "is not there",
      "http.tls.certFile",
      async () => ({ ...(await pairOf("gone")), certFile: join(folder, "nowhere.crt") }),
      "there is no such file",
    ],
    [
      "is a folder",
      "http.tls.certFile",
      async () => ({ ...(await pairOf("dir")), certFile: folder }),
      "it is a folder",
    ],
    [
      "is no PEM",
      "http.tls.certFile",
      async () => {
        const pair = await pairOf("rubbish");
        await writeFile(pair.certFile, "rubbish");
        return pair;
      },
      "no PEM",
    ],
    [
      "has another's key",
      "http.tls.keyFile",
      async () => ({ ...(await pairOf("other")), keyFile: join(folder, "second.key") }),
      "does not belong",
    ],
    [
      "has no key",
      "http.tls.keyFile",
      async () => ({ certFile: (await pairOf("alone")).certFile }),
      "useless without its private key",
    ],
  ] as const)("because it %s: path, value, reason and fix, and a non-zero exit", async (_name, path, make, reason) => {
    const { code, log } = await failure(await make());
    expect(code).toBe(2);
    expect(log).toContain(`${path} = "`);
    expect(log).toContain(reason);
    expect(log).toMatch(/fix: .+/);
    expect(log).not.toContain("PRIVATE KEY");
  });
});

// Not beside others: who asks is the whole process for a while.
test("[004-R3.10] [000-R7.5] a certificate that may not be read stops the start", async () => {
  const pair = await pairOf("forbidden");
  await chmod(folder, 0o755);
  await chmod(pair.keyFile, 0);
  const flags = [
    { path: "http.tls.certFile", name: "--set", value: pair.certFile },
    { path: "http.tls.keyFile", name: "--set", value: pair.keyFile },
  ];
  const refusal = await asOrdinaryUser(() =>
    loadConfig({ flags, env: {}, cwd: folder }).catch((error: unknown) => error),
  );
  expect(refusal).toBeInstanceOf(ConfigError);
  expect(String(refusal)).toContain(`http.tls.keyFile = ${JSON.stringify(pair.keyFile)}`);
  expect(String(refusal)).toContain("may not be read");
});

test("the image's health check is for servers with TLS and without, and for none at all", async () => {
  const secure = await start(await pairOf("healthcheck"));
  const plain = await start({});
  expect(await healthCheck(secure.port)).toBe(0);
  expect(await healthCheck(plain.port)).toBe(0);
  const gone = plain.port;
  await plain.stop();
  expect(await healthCheck(gone)).toBe(1);
}, 120_000);

test("the doctor knows a running server with TLS as its own", async () => {
  const tls = await pairOf("doctor");
  const root = join(folder, "doctor");
  const server = await start(tls, { sandbox: { root, enabled: false } });
  const at = ["--transport", "http", "--host", "127.0.0.1", "--port", String(server.port)];
  const files = ["--set", `http.tls.certFile=${tls.certFile}`, "--set", `http.tls.keyFile=${tls.keyFile}`];
  const { out } = await runCli(["mcp-server", "doctor", "--json", ...at, ...files], { env: { SANDBOX_ROOT: root } });
  expect(JSON.parse(out)).toContainEqual({
    category: "network",
    name: "port",
    status: "ok",
    message: `this server is listening on 127.0.0.1:${server.port}`,
  });
}, 120_000);
