import { writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, type ConfigIssue } from "../../../src/config/config-error.ts";
import { loadConfig, type LoadOptions } from "../../../src/config/load.ts";
import { DEFAULT_CONFIG } from "../../../src/config/schema.ts";
import { temporaryFolder, trustConfigIn } from "./temporary-folder.ts";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";

function load(options: LoadOptions & { readonly yaml?: string } = {}) {
  const { yaml, ...rest } = options;
  const cwd = options.cwd ?? temporaryFolder(yaml === undefined ? {} : { "mcp-server.yaml": yaml });
  const env = { XDG_DATA_HOME: temporaryFolder(), ...options.env };
  trustConfigIn(cwd, env);
  return loadConfig({ ...rest, env, cwd });
}

async function issuesOf(options: Parameters<typeof load>[0]): Promise<readonly ConfigIssue[]> {
  const thrown: unknown = await load(options).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof ConfigError)) throw new Error(`expected a ConfigError, got ${String(thrown)}`);
  return thrown.issues;
}

async function onlyIssue(options: Parameters<typeof load>[0]): Promise<ConfigIssue> {
  const issues = await issuesOf(options);
  expect(issues).toHaveLength(1);
  const [issue] = issues;
  if (issue === undefined) throw new Error("no issue");
  return issue;
}

async function corsOrigins(options: Parameters<typeof load>[0]): Promise<readonly string[]> {
  return (await load(options)).config.http.cors.origins;
}

describe("layers", () => {
  test("[000-R6.4] without any configuration the defaults hold", async () => {
    const { config, file, sources } = await load({ env: { XDG_DATA_HOME: "/data" } });
    expect(config).toEqual({ ...DEFAULT_CONFIG, sandbox: { ...DEFAULT_CONFIG.sandbox, root: "/data/owlclaw" } });
    expect(config).toMatchObject({
      transport: "stdio",
      mode: "production",
      http: { host: "localhost", port: 8080 },
      auth: { enabled: false },
    });
    expect(file).toBeUndefined();
    expect(new Set([...sources.values()].map(({ layer }) => layer))).toEqual(new Set(["default"]));
  });

  test("[004-R10.1] mcp-server.yaml in the working directory is read", async () => {
    const { config, file, sources } = await load({ yaml: "transport: http\nhttp:\n  port: 9000\n" });
    expect(config.transport).toBe("http");
    expect(config.http.port).toBe(9000);
    expect(file).toMatch(/mcp-server\.yaml$/);
    expect(sources.get("http.port")).toEqual({ layer: "file", name: "mcp-server.yaml:3:9" });
  });

  test("[004-R10.2] environment overrides the file", async () => {
    const { config, sources } = await load({
      yaml: "http: { port: 9000, maxSessions: 7 }",
      env: { MCP_SERVER_HTTP_PORT: "9001" },
    });
    expect(config.http).toMatchObject({ port: 9001, maxSessions: 7 });
    expect(sources.get("http.port")).toEqual({ layer: "env", name: "MCP_SERVER_HTTP_PORT" });
  });

  test("a key that has another name is set by it too, in every layer", async () => {
    const endpoint = "http://collector.example:4318";
    const yaml = `telemetry: { otlpEndpoint: "${endpoint}" }`;
    const flags = [{ path: "telemetry.otlpEndpoint", name: "--set", value: endpoint }];
    for (const options of [{ yaml }, { env: { MCP_SERVER_TELEMETRY_OTLP_ENDPOINT: endpoint } }, { flags }])
      expect((await load(options)).config.telemetry.otlp.endpoint).toBe(endpoint);
    expect(await onlyIssue({ yaml: "telemetry: { otlpEndpoint: nowhere }" })).toMatchObject({
      path: "telemetry.otlp.endpoint",
      source: "mcp-server.yaml:1:28",
    });
  });

  test("two names of one key in the file must agree", async () => {
    const file = (other: string): string =>
      `telemetry:\n  otlpEndpoint: http://one.example\n  otlp: { endpoint: "${other}" }\n`;
    expect((await load({ yaml: file("http://one.example") })).config.telemetry.otlp.endpoint).toBe(
      "http://one.example",
    );
    expect(await onlyIssue({ yaml: file("http://two.example") })).toMatchObject({
      path: "telemetry.otlp.endpoint",
      reason: "mcp-server.yaml:2:17 and mcp-server.yaml:3:21 both set it, to different values",
      fix: "keep one of them, telemetry.otlp.endpoint for example",
      layer: "file",
    });
  });

  test("[004-R10.3] flags override the file and the environment", async () => {
    const { config, sources } = await load({
      yaml: "http: { port: 9000 }",
      env: { MCP_SERVER_PORT: "9001" },
      flags: [{ path: "http.port", name: "--port", value: "9002" }],
    });
    expect(config.http.port).toBe(9002);
    expect(sources.get("http.port")).toEqual({ layer: "flag", name: "--port" });
  });

  test("the file can be named by option and by variable, the option first", async () => {
    const cwd = temporaryFolder({ "one.yaml": "mode: development", "two.yaml": "transport: http" });
    expect((await load({ cwd, env: { MCP_SERVER_CONFIG: "one.yaml" } })).config.mode).toBe("development");
    const { config, file } = await load({ cwd, env: { MCP_SERVER_CONFIG: "one.yaml" }, file: "two.yaml" });
    expect(config).toMatchObject({ mode: "production", transport: "http" });
    expect(file).toBe(join(cwd, "two.yaml"));
  });

  test("the configuration is frozen to its leaves", async () => {
    const { config } = await load({ yaml: "handlers: { paths: [a.ts] }" });
    expect(() => Reflect.apply(Array.prototype.push, config.handlers.paths, ["b"])).toThrow(TypeError);
    expect(Reflect.set(config.http, "port", 1)).toBe(false);
  });

  test("an empty section, an empty file and a file of comments change nothing", async () => {
    for (const yaml of ["", "# nothing\n", "http:\n", "http:\n  cors:\n  # enabled: true\n"]) {
      expect((await load({ yaml })).config.http).toEqual(DEFAULT_CONFIG.http);
    }
  });
});

describe("keys", () => {
  test("[004-R10.6] the transport is configurable", async () => {
    expect((await load({ yaml: "transport: http" })).config.transport).toBe("http");
    expect((await load({ env: { MCP_SERVER_TRANSPORT: "http" } })).config.transport).toBe("http");
    expect((await onlyIssue({ env: { MCP_SERVER_TRANSPORT: "htpp" } })).fix).toContain("did you mean http?");
  });

  test("[000-R6.1] [000-R6.2] MCP_SERVER_HOST and MCP_SERVER_PORT set the address", async () => {
    const { config } = await load({ env: { MCP_SERVER_HOST: "127.0.0.2", MCP_SERVER_PORT: "8775" } });
    expect(config.http).toMatchObject({ host: "127.0.0.2", port: 8775 });
  });

  test("[000-R6.3] MCP_ENABLE_CORS enables CORS", async () => {
    expect((await load({ env: { MCP_ENABLE_CORS: "true" } })).config.http.cors).toEqual({ enabled: true, origins: [] });
    expect((await load({ env: { MCP_ENABLE_CORS: "0" } })).config.http.cors.enabled).toBe(false);
  });

  test("[004-R10.7] CORS origins are configurable from a file and as a comma separated or JSON list", async () => {
    const origins = ["https://a.example", "http://localhost:5173"];
    expect(await corsOrigins({ yaml: `http: { cors: { origins: ${JSON.stringify(origins)} } }` })).toEqual(origins);
    expect(await corsOrigins({ env: { MCP_SERVER_HTTP_CORS_ORIGINS: origins.join(", ") } })).toEqual(origins);
    expect(await corsOrigins({ env: { MCP_SERVER_HTTP_CORS_ORIGINS: JSON.stringify(origins) } })).toEqual(origins);
  });

  test("the tool time-out is configurable", async () => {
    expect((await load({ yaml: "tools: { timeoutSeconds: 12.5 }" })).config.tools.timeoutSeconds).toBe(12.5);
  });

  test("[004-R10.10] log level and format are configurable", async () => {
    const { config } = await load({ yaml: "logging: { level: debug }", env: { MCP_SERVER_LOGGING_FORMAT: "pretty" } });
    expect(config.logging).toMatchObject({ level: "debug", format: "pretty" });
  });

  test("[003-FR-012] MCP_AUTH_* variables set up token verification", async () => {
    const { config } = await load({
      env: {
        MCP_AUTH_ENABLED: "true",
        MCP_AUTH_JWT_SECRET: SECRET,
        MCP_AUTH_AUDIENCE: "mcp",
        MCP_AUTH_ISSUER: "https://id.example",
      },
    });
    expect(config.auth).toEqual({
      enabled: true,
      jwt: { secret: SECRET, publicKey: "", jwksUrl: "", audience: "mcp", issuer: "https://id.example" },
    });
    expect((await load()).config.auth.enabled).toBe(false);
  });

  test("the variables of Docker and of microsandbox servers are read", async () => {
    const shared = temporaryFolder();
    const { config } = await load({
      env: {
        DOCKER_HOST: "unix:///run/podman.sock",
        DOCKER_CERT_PATH: "/certificates",
        MSB_MAX_SESSIONS: "7",
        MSB_SESSION_TIMEOUT: "900",
        MSB_DEFAULT_FLAVOR: "medium",
        MSB_MAX_TOTAL_MEMORY_MB: "4096",
        MSB_EXECUTION_TIMEOUT: "30",
        MSB_SHARED_VOLUME_PATH: shared,
        MSB_ENABLE_LRU_EVICTION: "false",
      },
    });
    expect(config.sandbox).toMatchObject({
      docker: { host: "unix:///run/podman.sock", certFolder: "/certificates" },
      maxTotal: 7,
      idleTimeoutSeconds: 900,
      flavor: "medium",
      maxTotalMemoryMb: 4096,
      codeTimeoutSeconds: 30,
      volumes: [shared],
      evictIdle: false,
    });
  });

  test("SANDBOX_ROOT and MCP_CLIENT_ID are read", async () => {
    const { config } = await load({ env: { SANDBOX_ROOT: "/srv/owl", MCP_CLIENT_ID: "editor" } });
    expect(config).toMatchObject({ sandbox: { root: "/srv/owl" }, stdio: { clientId: "editor" } });
  });

  test("relative paths belong to the place they are written in", async () => {
    const folder = temporaryFolder({
      "owl.yaml": 'handlers: { paths: [./tools/*.ts, "!./tools/x.ts"] }\nsandbox: { root: data }',
    });
    const cwd = temporaryFolder();
    const file = join(folder, "owl.yaml");
    const fromFile = (await load({ cwd, file })).config;
    expect(fromFile.handlers.paths).toEqual([join(folder, "tools/*.ts"), `!${join(folder, "tools/x.ts")}`]);
    expect(fromFile.sandbox.root).toBe(join(folder, "data"));
    expect((await load({ cwd, file, env: { SANDBOX_ROOT: "here" } })).config.sandbox.root).toBe(join(cwd, "here"));
  });

  test("a program is found where it was written, or by its bare name on the PATH", async () => {
    const python = async (value: string): Promise<string> =>
      (await load({ yaml: `handlers: { python: ${value} }` })).config.handlers.python;
    expect(await python("python3.12")).toBe("python3.12");
    expect(await python("/opt/python")).toBe("/opt/python");
    expect(isAbsolute(await python("./venv"))).toBe(true);
  });

  test("an empty variable counts as not set", async () => {
    expect((await load({ yaml: "http: { port: 9000 }", env: { MCP_SERVER_PORT: "" } })).config.http.port).toBe(9000);
  });

  test("variables that Kubernetes makes for a service of this name are no settings", async () => {
    const { config } = await load({
      env: {
        MCP_SERVER_PORT: "tcp://10.0.0.7:8080",
        MCP_SERVER_PORT_8080_TCP_ADDR: "10.0.0.7",
        MCP_SERVER_SERVICE_HOST: "10.0.0.7",
        MCP_SERVER_SERVICE_PORT_HTTP: "8080",
      },
    });
    expect(config.http).toEqual(DEFAULT_CONFIG.http);
  });
});

describe("problems", () => {
  test("every problem of every layer is reported at once, with path, value, reason, fix and place", async () => {
    const issues = await issuesOf({
      yaml: "http:\n  port: 99999\n  prot: 1\nauth: yes\n",
      env: { MCP_SERVER_HTTP_CORS_ENABLED: "maybe", MCP_SERVER_HTTP_MAX_SESSION: "5" },
      flags: [{ path: "logging.levle", name: "--set", value: "debug" }],
    });
    expect(issues.map(({ path, value, layer, source }) => [path, value, layer, source])).toEqual([
      ["http.prot", "1", "file", "mcp-server.yaml:3:9"],
      ["auth", "********", "file", "mcp-server.yaml:4:7"],
      ["http.port", "99999", "file", "mcp-server.yaml:2:9"],
      ["http.cors.enabled", '"maybe"', "env", "MCP_SERVER_HTTP_CORS_ENABLED"],
      ["MCP_SERVER_HTTP_MAX_SESSION", '"5"', "env", "MCP_SERVER_HTTP_MAX_SESSION"],
      ["logging.levle", '"debug"', "flag", "--set"],
    ]);
    expect(issues.map(({ fix }) => fix)).toEqual([
      expect.stringContaining("http.port"),
      expect.stringContaining("enabled, jwt"),
      expect.stringContaining("an integer from 0 to 65535"),
      expect.stringContaining("true or false"),
      expect.stringContaining("MCP_SERVER_HTTP_MAX_SESSIONS"),
      expect.stringContaining("logging.level"),
    ]);
  });

  test("the error's text holds all parts of each problem", async () => {
    const error = new ConfigError(await issuesOf({ yaml: "http: { port: -1 }\nmode: prod" }));
    expect(error.message).toMatchInlineSnapshot(`
      "The configuration has 2 problems:

        http.port = -1  (from mcp-server.yaml:1:15)
          reason: too small: expected number to be >=0
          fix:    set http.port to an integer from 0 to 65535

        mode = "prod"  (from mcp-server.yaml:2:7)
          reason: invalid option: expected one of "production"|"development"
          fix:    set mode to one of production, development (did you mean production?)"
    `);
  });

  test("a bad value in the file is reported although the environment overrides it", async () => {
    expect(await onlyIssue({ yaml: "http: { port: x }", env: { MCP_SERVER_PORT: "1" } })).toMatchObject({
      path: "http.port",
      layer: "file",
    });
  });

  test.each([
    ["null", "http: { port: }"],
    ["text for a number", 'http: { port: "8080" }'],
    ["a fraction for an integer", "http: { port: 80.5 }"],
    ["not a number", "tools: { timeoutSeconds: .nan }"],
    ["a delay beyond what timers can do", "tools: { timeoutSeconds: 99999999999 }"],
    ["text for a boolean", 'auth: { enabled: "true" }'],
    ["a single value for a list", "handlers: { paths: a.ts }"],
    ["a number in a list", "handlers: { paths: [1] }"],
    ["an empty host", 'http: { host: " " }'],
    ["a prototype key", "__proto__: { transport: http }"],
    ["a list for the whole file", "- transport"],
  ])("refuses %s", async (_, yaml) => {
    expect(await onlyIssue({ yaml })).toMatchObject({
      layer: "file",
      reason: expect.stringMatching(/./),
      fix: expect.stringMatching(/./),
    });
  });

  test("YAML errors name line and column", async () => {
    expect(await onlyIssue({ yaml: "http:\n  port: [1\n" })).toMatchObject({
      reason: expect.stringMatching(/^line \d+, column \d+: /),
    });
    expect(await onlyIssue({ yaml: "mode: production\nmode: development" })).toMatchObject({
      path: "mcp-server.yaml:2:1",
      reason: "line 2, column 1: Map keys must be unique",
    });
  });

  test("one file holds one document", async () => {
    expect((await onlyIssue({ yaml: "mode: production\n---\nmode: development\n" })).reason).toContain(
      "only one YAML document",
    );
  });

  test("aliases that would blow up are refused", async () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) => `a${level + 1}: &a${level + 1} [${`*a${level},`.repeat(9)}]`,
    );
    const issue = await onlyIssue({ yaml: ["a0: &a0 [x]", ...levels].join("\n") });
    expect(issue.reason).toContain("aliases");
  });

  test("a file that is missing, a folder, too large or not UTF-8 is named", async () => {
    const cwd = temporaryFolder({ "large.yaml": `# ${"x".repeat(2 ** 20)}` });
    writeFileSync(join(cwd, "latin.yaml"), Buffer.from([0x23, 0xe9, 0x0a]));
    for (const file of ["missing.yaml", ".", "large.yaml", "latin.yaml"]) {
      expect(await onlyIssue({ cwd, file })).toMatchObject({
        path: join(cwd, file),
        reason: expect.stringContaining("cannot be read"),
      });
    }
  });

  test("two names of one key with different values are refused, with equal ones accepted", async () => {
    const issue = await onlyIssue({ env: { MCP_SERVER_PORT: "1", MCP_SERVER_HTTP_PORT: "2" } });
    expect(issue).toMatchObject({ path: "http.port", reason: expect.stringContaining("MCP_SERVER_HTTP_PORT") });
    expect((await load({ env: { MCP_SERVER_PORT: "2", MCP_SERVER_HTTP_PORT: "2" } })).config.http.port).toBe(2);
  });
});

describe("secrets in problems", () => {
  const hidden = "hunter2-hunter2";
  test.each([
    ["a short secret", { yaml: `auth: { jwt: { secret: ${hidden} } }` }],
    ["a misspelt key", { yaml: `auth: { jwt: { secrett: ${hidden} } }` }],
    ["a misplaced section", { yaml: `jwt: { secret: ${hidden} }` }],
    ["a section that is a value", { yaml: `auth: ${hidden}` }],
    ["a whole file that is a value", { yaml: hidden }],
    ["a broken line", { yaml: `auth: { jwt: { secret: *${hidden} } }` }],
    ["an unknown tag", { yaml: `auth: { jwt: { secret: !${hidden} x } }` }],
    ["a bad escape", { yaml: `auth: { jwt: { secret: "${hidden}\\q" } }` }],
    ["a misspelt variable", { env: { MCP_SERVER_AUTH_JWT_SECRT: hidden } }],
    ["a misspelt flag", { flags: [{ path: "auth.jwt.secre", name: "--set", value: hidden }] }],
    ["a URL with a password", { yaml: `auth: { jwt: { jwksUrl: "https://me:${hidden}@id.example/keys" } }` }],
    [
      "contradicting variables",
      { env: { MCP_AUTH_JWT_SECRET: hidden.repeat(3), MCP_SERVER_AUTH_JWT_SECRET: hidden.repeat(4) } },
    ],
    ["a private key", { env: { MCP_AUTH_JWT_PUBLIC_KEY: `-----BEGIN PRIVATE KEY-----\n${hidden}` } }],
  ])("%s never shows its value", async (_, options) => {
    const error = new ConfigError(await issuesOf(options));
    expect(JSON.stringify([error.message, error.issues])).not.toContain(hidden);
  });
});
