import { generateKeyPairSync } from "node:crypto";
import { Ajv } from "ajv";
import fc from "fast-check";
import { parse } from "yaml";
import { describe, expect, test } from "vitest";
import {
  effectiveValues,
  configJsonSchema,
  renderSampleYaml,
  configReference,
} from "../../../src/config/render-config.ts";
import { CONFIG_KEYS, envName, type ConfigKey } from "../../../src/config/keys.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { DEFAULT_CONFIG } from "../../../src/config/schema.ts";
import { selfSignedCertificatePem } from "../auth/self-signed-certificate.ts";
import { temporaryFolder } from "./temporary-folder.ts";

// Keys whose values obey more than a type; the numbers stay where no rule joins two keys.
const SPECIAL: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  "http.socket": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "http.host": fc.constantFrom("127.0.0.1", "::1"),
  "http.cors.origins": fc.array(fc.constantFrom("*", "https://a.example", "http://localhost:1"), { minLength: 1 }),
  "http.headersTimeoutSeconds": fc.integer({ min: 1, max: 14 }),
  "http.requestTimeoutSeconds": fc.integer({ min: 31, max: 1000 }),
  "auth.jwt.secret": fc.stringMatching(/^[a-z]{32,40}$/),
  "auth.jwt.jwksUrl": fc.webUrl({ validSchemes: ["https"] }),
  "sandbox.root": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "sandbox.workspace": fc.stringMatching(/^\/w[a-z]{1,9}$/),
  "sandbox.runtime": fc.constantFrom("auto", "bubblewrap", "docker"),
  "sandbox.templates": fc.constantFrom({ node: { runtime: "docker" } }, { boxed: { image: "science:3" } }),
  "sandbox.docker.certFolder": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "sandbox.template": fc.constantFrom("python", "node"),
  "sandbox.network.allow": fc.constantFrom(["pip"], ["a.example", "*.b.example:8080", "10.0.0.0/8"]),
  "sandbox.network.templates": fc.constantFrom({ node: ["npm"] }, { python: [], node: ["a.example"] }),
  "http.trustedProxies": fc.constantFrom(["10.0.0.7"], ["10.0.0.0/8", "::1"]),
  "sandbox.volumes": fc.constantFrom(["/usr/share:/data:ro"], ["/usr/share:/data:ro", "/usr/lib:/lib-of-host:ro"]),
  "sandbox.env": fc.dictionary(fc.stringMatching(/^X_[A-Z]{1,9}$/), fc.stringMatching(/^[a-z]{1,9}$/), { minKeys: 1 }),
  "sandbox.browser.executable": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "sandbox.pool.size": fc.integer({ min: 0, max: 1000 }),
  "sandbox.pool.preload": fc.constantFrom(["numpy"], ["matplotlib.pyplot", "pandas"]),
  "tools.dialects": fc.constantFrom(["native"], ["microsandbox", "open-sandbox"]),
  "tools.toolsets": fc.constantFrom(["code"], ["shell", "files"]),
  "governance.policyFile": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "governance.timeZone": fc.constantFrom("Europe/Berlin", "Pacific/Apia"),
  "governance.defaults.confirm": fc.constantFrom({ shell_exec: "operator" }, { "*": "client" }),
  "governance.clients": fc.constantFrom({ ada: { callsPerMinute: 5 } }, { "ci-*": { visible: ["file_*"] } }),
  "governance.groups": fc.constantFrom({ interns: { deny: ["shell_exec"] } }),
  "governance.labels": fc.constantFrom({ "*": { callsPerMinute: 60 } }),
  "governance.tools": fc.constantFrom({ code_run: { cost: 0.5 } }, { "*": { confirm: "client" } }),
  "governance.rules": fc.constantFrom([{ id: "no-etc", when: "args.path == '/etc'", effect: "deny" }]),
  "ledger.retentionDays": fc.integer({ min: 1, max: 36_500 }),
  "ledger.keyFolder": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "alerts.webhook": fc.webUrl({ validSchemes: ["https"] }),
  "alerts.checkSeconds": fc.integer({ min: 1, max: 600 }),
  "logging.fileMaxBytes": fc.integer({ min: 10_000, max: 1_000_000 }),
  "logging.file": fc.stringMatching(/^[a-z]{1,9}$/).map((name) => `/srv/${name}.log`),
  "logging.fileKeep": fc.integer({ min: 0, max: 100 }),
  "telemetry.metricsAddress": fc.integer({ min: 1, max: 65_535 }).map((port) => `127.0.0.1:${port}`),
  "telemetry.otlp.endpoint": fc.integer({ min: 1, max: 65_535 }).map((port) => `http://collector.example:${port}`),
  "telemetry.otlp.headers": fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), fc.stringMatching(/^[a-z]{1,9}$/), {
    minKeys: 1,
  }),
  "telemetry.otlp.sampleRatio": fc.constantFrom(0, 0.25, 0.5),
  "ledger.verifyHours": fc.integer({ min: 0, max: 23 }),
  "ledger.checkpointMinutes": fc.integer({ min: 0, max: 9 }),
  "limits.leaseSeconds": fc.integer({ min: 1, max: 3600 }),
  "skills.dir": fc.constantFrom("/usr/share", "/usr/lib"),
  "handlers.python": fc.stringMatching(/^\/[a-z]{1,9}$/),
  "handlers.workers": fc.integer({ min: 1, max: 64 }),
  "handlers.paths": fc.array(fc.stringMatching(/^\/[a-z]{1,9}$/), { minLength: 1 }),
};
// These stand or fall with a second key or with files: they have a test of their own.
const JOINED = new Set([
  "auth.enabled",
  "auth.jwt.publicKey",
  "http.tls.certFile",
  "http.tls.keyFile",
  "store.url",
  "cluster.key",
  "cluster.url",
]);

function valueFor(key: ConfigKey): fc.Arbitrary<unknown> {
  const special = SPECIAL[key.path];
  if (special !== undefined) return special;
  switch (key.type) {
    case "boolean":
      return fc.boolean();
    case "choice":
      return fc.constantFrom(...key.choices);
    case "integer":
      return fc.integer({ min: 1024, max: 65_000 });
    case "number":
      return fc.integer({ min: 1, max: 100_000 }).map((number) => number / 8);
    case "list":
      return fc.array(fc.stringMatching(/^[a-z.]{1,20}$/), { minLength: 1 });
    case "map":
      return fc.dictionary(fc.stringMatching(/^[A-Z]{1,9}$/), fc.string());
    case "string":
      return fc.stringMatching(/^[a-z][a-z0-9.:/-]{0,30}$/);
  }
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

describe("every key", () => {
  test("[004-R10.2] is set by its variable, and config show says so", async () => {
    const cwd = temporaryFolder();
    const settings = fc
      .constantFrom(...CONFIG_KEYS.filter(({ path }) => !JOINED.has(path)))
      .chain((key) => fc.tuple(fc.constant(key), fc.constantFrom(...key.env), valueFor(key)));
    await fc.assert(
      fc.asyncProperty(settings, async ([key, variable, value]) => {
        const loaded = await loadConfig({ cwd, env: { [variable]: toText(value) } });
        const shown = effectiveValues(loaded).find(({ path }) => path === key.path);
        expect(shown).toMatchObject({ value: key.secret ? "********" : value, layer: "env", source: variable });
        const others = effectiveValues(loaded).filter(({ path }) => path !== key.path);
        expect(others.every(({ layer }) => layer === "default")).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("that needs another key or a file is set by its variable too", async () => {
    const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const cwd = temporaryFolder({
      "a.crt": selfSignedCertificatePem(keys),
      "a.key": keys.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      "a.pub": keys.publicKey.export({ type: "spki", format: "pem" }).toString(),
    });
    const values = new Map([
      ["auth.enabled", "true"],
      ["auth.jwt.publicKey", "a.pub"],
      ["http.tls.certFile", "a.crt"],
      ["http.tls.keyFile", "a.key"],
      ["store.url", "postgres://owlclaw@db.example/owlclaw"],
      ["cluster.key", "a-secret-of-at-least-thirty-two-bytes"],
      ["cluster.url", "http://10.0.0.5:8080"],
    ]);
    expect(new Set(values.keys())).toEqual(JOINED);
    const env = Object.fromEntries([...values].map(([path, text]) => [envName(path), text]));
    const shown = effectiveValues(await loadConfig({ cwd, env })).filter(({ layer }) => layer === "env");
    expect(new Map(shown.map(({ path, source }) => [path, source]))).toEqual(
      new Map([...JOINED].map((path) => [path, envName(path)])),
    );
  });

  test("has names of its own in the environment", () => {
    const names = CONFIG_KEYS.flatMap(({ env }) => env);
    expect(new Set(names).size).toBe(names.length);
    expect(envName("sandbox.idleTimeoutSeconds")).toBe("MCP_SERVER_SANDBOX_IDLE_TIMEOUT_SECONDS");
  });

  test("has a description and a default that it accepts", () => {
    const withoutDescription = CONFIG_KEYS.filter(({ description }) => !/^[A-Za-z].*\.$/.test(description));
    const withBadDefault = CONFIG_KEYS.filter(({ schema, defaultValue }) => !schema.safeParse(defaultValue).success);
    expect([...withoutDescription, ...withBadDefault].map(({ path }) => path)).toEqual([]);
  });

  test("is in the reference table", () => {
    expect(configReference().map(({ path }) => path)).toEqual(CONFIG_KEYS.map(({ path }) => path));
    expect(configReference().find(({ path }) => path === "http.port")).toEqual({
      path: "http.port",
      type: "integer",
      default: "8080",
      env: ["MCP_SERVER_HTTP_PORT", "MCP_SERVER_PORT"],
      description: "Port to listen on. 0: any free port.",
    });
  });
});

describe("the sample file", () => {
  test("holds every default", () => {
    expect(parse(renderSampleYaml())).toEqual(DEFAULT_CONFIG);
  });

  test("loads as the defaults", async () => {
    const { config, file } = await loadConfig({
      cwd: temporaryFolder({ "mcp-server.yaml": renderSampleYaml() }),
      env: { SANDBOX_ROOT: "/x" },
      acceptsUntrusted: true,
    });
    expect(file).toBeDefined();
    expect(config).toEqual({ ...DEFAULT_CONFIG, sandbox: { ...DEFAULT_CONFIG.sandbox, root: "/x" } });
  });
});

describe("the JSON Schema for editors", () => {
  const schema = configJsonSchema();
  const validate = new Ajv({ strict: false }).compile(schema);

  test("accepts the sample file, an empty one and a partial one", () => {
    for (const value of [parse(renderSampleYaml()), {}, { http: { port: 1 } }]) expect(validate(value)).toBe(true);
  });

  test("knows the other name of a key", () => {
    expect(validate({ telemetry: { otlpEndpoint: "http://localhost:4318" } })).toBe(true);
    expect(validate({ telemetry: { otlpEndpoint: 4318 } })).toBe(false);
  });

  test("refuses unknown keys and wrong types", () => {
    for (const value of [{ htp: {} }, { http: { prot: 1 } }, { http: { port: "1" } }, { mode: "prod" }])
      expect(validate(value)).toBe(false);
  });

  test("marks secrets and carries descriptions", () => {
    expect(schema).toMatchObject({
      properties: {
        auth: {
          properties: {
            jwt: {
              properties: { secret: { writeOnly: true }, audience: { description: expect.stringContaining("aud") } },
            },
          },
        },
      },
    });
    expect(JSON.stringify(schema).match(/"writeOnly":true/g)).toHaveLength(6);
  });
});
