import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, type ConfigIssue } from "../../../src/config/config-error.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { isCorsOrigin, isJwksUrl, isLoopbackHost } from "../../../src/config/value-rules.ts";
import { selfSignedCertificatePem } from "../auth/self-signed-certificate.ts";
import { temporaryFolder } from "./temporary-folder.ts";

function writeCertificate(folder: string, name: string): void {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(join(folder, `${name}.crt`), selfSignedCertificatePem(keys));
  writeFileSync(join(folder, `${name}.key`), keys.privateKey.export({ type: "pkcs8", format: "pem" }));
}

function tls(cert: string, key: string): Record<string, string> {
  return { MCP_SERVER_HTTP_TLS_CERT_FILE: cert, MCP_SERVER_HTTP_TLS_KEY_FILE: key };
}

const SECRET = "a-secret-of-at-least-thirty-two-bytes";

async function problems(
  env: Readonly<Record<string, string>>,
  cwd: string = temporaryFolder(),
): Promise<readonly ConfigIssue[]> {
  try {
    await loadConfig({ env, cwd });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.issues;
    throw error;
  }
}

const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const PUBLIC_PEM = publicKey.export({ type: "spki", format: "pem" }).toString();

describe("[003-FR-012] auth needs exactly one key", () => {
  test("enabled without a key stops the start", async () => {
    expect(await problems({ MCP_AUTH_ENABLED: "true" })).toMatchObject([
      {
        path: "auth.enabled",
        value: "true",
        source: "MCP_AUTH_ENABLED",
        fix: expect.stringContaining("MCP_AUTH_JWT_SECRET"),
      },
    ]);
  });

  test("a secret and a public key together stop the start, and neither is shown", async () => {
    const issues = await problems({
      MCP_AUTH_ENABLED: "true",
      MCP_AUTH_JWT_SECRET: SECRET,
      MCP_AUTH_JWT_PUBLIC_KEY: PUBLIC_PEM,
    });
    expect(issues).toMatchObject([
      { path: "auth.enabled", reason: expect.stringContaining("auth.jwt.secret and auth.jwt.publicKey") },
    ]);
    expect(JSON.stringify(issues)).not.toContain(SECRET);
  });

  test("a key set beside another key stops the start", async () => {
    const env = {
      MCP_AUTH_ENABLED: "true",
      MCP_AUTH_JWT_SECRET: SECRET,
      MCP_SERVER_AUTH_JWT_JWKS_URL: "https://id.example/keys",
      MCP_AUTH_ISSUER: "https://id.example",
    };
    expect(await problems(env)).toMatchObject([{ path: "auth.enabled" }]);
  });

  test("a key set without the issuer whose tokens are accepted stops the start", async () => {
    const env = { MCP_AUTH_ENABLED: "true", MCP_SERVER_AUTH_JWT_JWKS_URL: "https://id.example/keys" };
    expect(await problems(env)).toMatchObject([
      { path: "auth.jwt.issuer", fix: expect.stringContaining("MCP_AUTH_ISSUER") },
    ]);
    expect(await problems({ ...env, MCP_AUTH_ISSUER: "https://id.example" })).toEqual([]);
  });

  test("a secret under 32 bytes is refused, and a missing key is not reported on top", async () => {
    expect(await problems({ MCP_AUTH_ENABLED: "true", MCP_AUTH_JWT_SECRET: "x".repeat(31) })).toMatchObject([
      { path: "auth.jwt.secret", value: "********", reason: expect.stringContaining("32 bytes") },
    ]);
    expect(await problems({ MCP_AUTH_ENABLED: "true", MCP_AUTH_JWT_SECRET: "x".repeat(32) })).toEqual([]);
    expect(await problems({ MCP_AUTH_ENABLED: "true", MCP_AUTH_JWT_SECRET: "é".repeat(16) })).toEqual([]);
  });

  test("the public key may be PEM text, text with escaped line breaks, or a file", async () => {
    const cwd = temporaryFolder({ "key.pem": PUBLIC_PEM });
    for (const value of [PUBLIC_PEM, PUBLIC_PEM.replaceAll("\n", "\\n"), "key.pem"]) {
      const { config } = await loadConfig({ env: { MCP_AUTH_ENABLED: "1", MCP_AUTH_JWT_PUBLIC_KEY: value }, cwd });
      expect(config.auth.jwt.publicKey).toBe(PUBLIC_PEM);
    }
  });

  test("a public key that is missing, garbage or private is refused", async () => {
    const cwd = temporaryFolder({ "garbage.pem": "nothing" });
    const reasonFor = async (value: string) =>
      (await problems({ MCP_AUTH_JWT_PUBLIC_KEY: value }, cwd)).map(({ reason }) => reason);
    expect(await reasonFor("missing.pem")).toEqual(["there is no such file"]);
    expect(await reasonFor("garbage.pem")).toEqual(["it holds no PEM that can be read"]);
    const secretPem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    expect(await reasonFor(secretPem)).toEqual([expect.stringContaining("private key")]);
  });
});

describe("listening beyond loopback", () => {
  const open = { MCP_SERVER_TRANSPORT: "http", MCP_SERVER_HOST: "0.0.0.0" };

  test("without auth it stops the start and names the flag", async () => {
    expect(await problems(open)).toMatchObject([
      {
        path: "http.host",
        value: '"0.0.0.0"',
        source: "MCP_SERVER_HOST",
        fix: expect.stringContaining("--allow-unauthenticated"),
      },
    ]);
  });

  test("auth, the named permission, or stdio make it acceptable", async () => {
    expect(await problems({ ...open, MCP_AUTH_ENABLED: "true", MCP_AUTH_JWT_SECRET: SECRET })).toEqual([]);
    expect(await problems({ ...open, MCP_SERVER_ALLOW_UNAUTHENTICATED: "true" })).toEqual([]);
    expect(await problems({ MCP_SERVER_HOST: "0.0.0.0" })).toEqual([]);
  });

  test.each([
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "[::1]",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1",
  ])("%s is loopback", (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  });

  test.each([
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "127.0.0.1.example.com",
    "localhost.example.com",
    "::2",
    "::ffff:10.0.0.1",
    "mylocalhost",
    "1270.0.0.1",
    "",
  ])("%s is not loopback", (host) => {
    expect(isLoopbackHost(host)).toBe(false);
  });
});

describe("[004-R10.7] TLS files", () => {
  test("a certificate with its key is accepted, with another's refused", async () => {
    const cwd = temporaryFolder();
    writeCertificate(cwd, "a");
    writeCertificate(cwd, "b");
    expect(await problems(tls("a.crt", "a.key"), cwd)).toEqual([]);
    expect(await problems(tls("a.crt", "b.key"), cwd)).toMatchObject([
      {
        path: "http.tls.keyFile",
        value: JSON.stringify(join(cwd, "b.key")),
        reason: "the private key does not belong to the certificate",
      },
    ]);
  });

  test("half a pair is refused", async () => {
    expect(await problems(tls("a.crt", ""))).toMatchObject([{ path: "http.tls.keyFile" }]);
    expect(await problems(tls("", "a.key"))).toMatchObject([{ path: "http.tls.certFile" }]);
  });

  test("files that are missing or hold something else are each named", async () => {
    const cwd = temporaryFolder();
    writeFileSync(join(cwd, "x"), "hello");
    expect(await problems(tls("none.crt", "none.key"), cwd)).toMatchObject([
      { path: "http.tls.certFile", reason: "there is no such file" },
      { path: "http.tls.keyFile", reason: "there is no such file" },
    ]);
    expect(await problems(tls("x", "x"), cwd)).toMatchObject([
      { path: "http.tls.certFile", reason: "it holds no PEM that can be read" },
      { path: "http.tls.keyFile", reason: "it holds no PEM that can be read" },
    ]);
  });
});

describe("origins and URLs", () => {
  test.each([
    "*",
    "https://app.example.com",
    "http://localhost:5173",
    "http://[::1]:8080",
    "chrome-extension://abcdef",
    "vscode-webview://x1-2",
  ])("%s is an origin", (origin) => {
    expect(isCorsOrigin(origin)).toBe(true);
  });

  test.each([
    "https://*",
    "https://*.example.com",
    "https://app.example.com/",
    "https://app.example.com/path",
    "https://app.example.com?x",
    "https://user@app.example.com",
    "https://app.example.com:443",
    "app.example.com",
    "null",
    "file:///etc",
    "",
    "**",
  ])("%s is no origin", (origin) => {
    expect(isCorsOrigin(origin)).toBe(false);
  });

  test("a list with one bad origin names its place", async () => {
    expect(await problems({ MCP_SERVER_HTTP_CORS_ORIGINS: "https://a.example,https://b.example/x" })).toMatchObject([
      { path: "http.cors.origins[1]", value: '"https://b.example/x"' },
    ]);
  });

  test("key sets come over https, or from this machine", () => {
    expect(
      ["https://id.example/keys", "http://localhost:9/keys", "http://127.0.0.1/keys", "http://[::1]/k"].filter(
        isJwksUrl,
      ),
    ).toHaveLength(4);
    expect(
      [
        "http://id.example/keys",
        "https://a:b@id.example/keys",
        "ftp://localhost/",
        "id.example",
        "file:///keys",
      ].filter(isJwksUrl),
    ).toEqual([]);
  });
});

test("request headers may not take longer than the whole request", async () => {
  expect(await problems({ MCP_SERVER_HTTP_HEADERS_TIMEOUT_SECONDS: "31" })).toMatchObject([
    { path: "http.headersTimeoutSeconds" },
  ]);
});

describe("several servers", () => {
  const STORE = { MCP_SERVER_STORE_URL: "postgres://owlclaw@db.example/owlclaw" };
  const KEY = { MCP_SERVER_CLUSTER_KEY: "a-secret-of-at-least-thirty-two-bytes" };

  test("count in the store that they share, or do not start", async () => {
    const fix = expect.stringContaining("set store.url to the postgres:// URL");
    expect(await problems(KEY)).toMatchObject([
      { path: "store.url", reason: expect.stringContaining("cluster.key"), fix },
    ]);
    for (const shared of [STORE, { ...STORE, ...KEY }]) expect(await problems(shared)).toEqual([]);
  });

  test("that kept sessions in Redis are told where sessions are kept now, and the URL is not shown", async () => {
    const fix = expect.stringContaining("set store.url to a postgres:// URL");
    const found = await problems({ ...STORE, MCP_SERVER_LIMITS_URL: "redis://:hunter22@counter.example" });
    expect(found).toMatchObject([{ path: "limits.url", reason: expect.stringContaining("Redis"), fix }]);
    expect(JSON.stringify(found)).not.toContain("hunter22");
  });

  test("have a key that nobody guesses, and an address that another server can call", async () => {
    expect(await problems({ ...STORE, MCP_SERVER_CLUSTER_KEY: "x".repeat(31) })).toMatchObject([
      { path: "cluster.key", reason: expect.stringContaining("32 bytes") },
    ]);
    expect(await problems({ MCP_SERVER_CLUSTER_URL: "http://10.0.0.5:8080" })).toMatchObject([{ path: "cluster.url" }]);
    for (const url of ["10.0.0.5:8080", "http://10.0.0.5:8080/mcp", "http://a:b@10.0.0.5", "ftp://10.0.0.5"])
      expect(await problems({ ...STORE, ...KEY, MCP_SERVER_CLUSTER_URL: url })).toMatchObject([
        { path: "cluster.url" },
      ]);
    const everywhere = { ...STORE, ...KEY, MCP_SERVER_HOST: "0.0.0.0", MCP_SERVER_ALLOW_UNAUTHENTICATED: "true" };
    expect(await problems(everywhere)).toMatchObject([
      { path: "cluster.url", reason: expect.stringContaining("0.0.0.0") },
    ]);
  });
});

describe("a Unix socket", () => {
  const settings = { MCP_SERVER_TRANSPORT: "http", MCP_SERVER_HTTP_SOCKET: "/srv/project/run/owlclaw.sock" };

  test("needs no auth, and is refused beside what needs a port", async () => {
    expect(await problems(settings)).toEqual([]);
    expect(await problems({ ...settings, MCP_SERVER_STORE_URL: "postgres://u@db.example/o" })).toMatchObject([
      { path: "http.socket", reason: expect.stringContaining("store.url") },
    ]);
  });

  test("is refused in a folder that sandboxes see", async () => {
    const folder = temporaryFolder({});
    const volumes = `${folder}:/data`;
    const env = {
      ...settings,
      MCP_SERVER_HTTP_SOCKET: `${folder}/run/owlclaw.sock`,
      MCP_SERVER_SANDBOX_VOLUMES: volumes,
    };
    expect(await problems(env)).toMatchObject([{ path: "http.socket", reason: expect.stringContaining(volumes) }]);
  });
});
