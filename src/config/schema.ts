import { z } from "zod";
import { isCorsOrigin, isJwksUrl, isServerUrl, parseAddressRange } from "./value-rules.ts";
import { count, fieldFacts, messageBytes, seconds } from "./field.ts";
import { deepFreeze, type DeepReadonly } from "./deep-freeze.ts";
import { governance, limits } from "./governance-schema.ts";
import { alerts, ledger, store } from "./ledger-schema.ts";
import { sandbox } from "./sandbox-schema.ts";
import { logging, telemetry } from "./telemetry-schema.ts";

const MIN_KEY_BYTES = 32;

const cluster = z
  .strictObject({
    key: z
      .string()
      .refine(
        (text) => text === "" || Buffer.byteLength(text) >= MIN_KEY_BYTES,
        `must be at least ${MIN_KEY_BYTES} bytes, such as the output of openssl rand -base64 32`,
      )
      .default("")
      .describe("Secret that servers behind one balancer share. With it a call finds its sandbox on any of them.")
      .register(fieldFacts, { secret: true }),
    url: z
      .string()
      .refine((text) => text === "" || isServerUrl(text), "must be an address such as https://10.0.0.5:8080")
      .default("")
      .describe("Where the other servers reach this one. Empty: the address that it listens on."),
  })
  .prefault({})
  .describe("Several servers that share the load.");

const dashboard = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Serves the page for operators at /dashboard, over HTTP."),
    besideStdio: z
      .boolean()
      .default(false)
      .describe("Serves it on a port of loopback, too, when clients use stdio: start --dashboard."),
    port: z.int().min(0).max(65_535).default(0).describe("That port. 0: any free one."),
    idleSeconds: seconds().default(1800).describe("An operator who does nothing for this long has to log in again."),
    maxAgeSeconds: seconds().default(28_800).describe("The same after this long in any case."),
  })
  .prefault({})
  .describe("The page for operators.");

const handlers = z
  .strictObject({
    paths: z
      .array(z.string().min(1))
      .default([])
      .describe("Files, folders or globs with your own handlers, resources and prompts.")
      .register(fieldFacts, { path: "glob" }),
    isolation: z
      .enum(["worker", "sandbox", "none"])
      .default("worker")
      .describe(
        "Where handlers run: worker: processes beside the server. sandbox: isolated, without network and the server's files. none: in the server's own process, the fastest and least protected.",
      ),
    workers: count()
      .default(4)
      .describe("Most worker processes per language. Each starts when the ones before it are blocked or busy."),
    python: z
      .string()
      .default("")
      .describe("The Python for .py handlers, 3.9 or later: a program or a virtualenv's folder. Empty: python3.")
      .register(fieldFacts, { path: "program" }),
    watch: z.boolean().default(true).describe("A change of a handler file changes the tools, without a restart."),
    inlineSkills: z
      .boolean()
      .default(false)
      .describe("Puts the whole text of a tool's skill into its description. false: a summary and the skill's URI."),
  })
  .prefault({})
  .describe("Your own functions, served as tools.");

const skills = z
  .strictObject({
    dir: z
      .string()
      .default("")
      .describe("Folder with your skills, as category/name/SKILL.md. Empty: no skills.")
      .register(fieldFacts, { path: "file" }),
    cacheTtlSeconds: seconds()
      .default(600)
      .describe("Skills are kept in memory for this long before the disk is looked at again, whether watched or not."),
    watch: z
      .boolean()
      .default(true)
      .describe("Follows changes of the folder at once. false: changes are seen after skills.cacheTtlSeconds."),
  })
  .prefault({})
  .describe("Your knowledge, served as resources.");

const cors = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        "Answers browsers from other origins. With no origins listed, only pages served from loopback are let in.",
      )
      .register(fieldFacts, { env: ["MCP_ENABLE_CORS"] }),
    origins: z
      .array(z.string().refine(isCorsOrigin, 'must be an origin such as https://app.example.com, or "*"'))
      .default([])
      .describe(
        'Origins that may read answers, as scheme://host[:port]. "*" lets every page in, always without credentials.',
      ),
  })
  .prefault({})
  .describe("Cross-origin requests from browsers.");

const tls = z
  .strictObject({
    certFile: z
      .string()
      .default("")
      .describe("PEM file with the certificate and its chain. Empty: plain HTTP.")
      .register(fieldFacts, { path: "file" }),
    keyFile: z
      .string()
      .default("")
      .describe("PEM file with the private key of the certificate.")
      .register(fieldFacts, { path: "file" }),
  })
  .prefault({})
  .describe("HTTPS. The files are read again when they change.");

const http = z
  .strictObject({
    host: z
      .string()
      .trim()
      .min(1)
      .default("localhost")
      .describe("Address to listen on. Anything but loopback needs auth.enabled or http.allowUnauthenticated.")
      .register(fieldFacts, { env: ["MCP_SERVER_HOST"] }),
    port: z
      .int()
      .min(0)
      .max(65_535)
      .default(8080)
      .describe("Port to listen on. 0: any free port.")
      .register(fieldFacts, { env: ["MCP_SERVER_PORT"] }),
    socket: z
      .string()
      .trim()
      .default("")
      .describe(
        "Path of a Unix socket to listen on instead of host and port. Only the server's user and root can connect.",
      )
      .register(fieldFacts, { path: "file" }),
    allowOtherUsers: z
      .boolean()
      .default(false)
      .describe(
        "Serves every user of this machine when it listens on loopback without auth. Default: only the server's user and root (Linux).",
      ),
    allowUnauthenticated: z
      .boolean()
      .default(false)
      .describe("Lets anyone who reaches the address use the server, when it listens beyond loopback without auth.")
      .register(fieldFacts, { env: ["MCP_SERVER_ALLOW_UNAUTHENTICATED"] }),
    allowedHosts: z
      .array(z.string().trim().min(1))
      .default([])
      .describe("Further host names accepted in the Host header, such as the public name behind a proxy."),
    trustedProxies: z
      .array(
        z
          .string()
          .trim()
          .refine(
            (text) => parseAddressRange(text) !== undefined,
            "must be an address such as 10.0.0.7 or a range such as 10.0.0.0/8",
          ),
      )
      .default([])
      .describe(
        "Addresses and ranges of reverse proxies that are believed in X-Forwarded-For and Forwarded when they say which client they ask for.",
      ),
    maxBodyBytes: messageBytes().default(4_194_304).describe("Largest request body; more is answered with 413."),
    maxConnections: count()
      .default(1000)
      .describe(
        "Most TCP connections at a time. One in twenty, at least one, serves only /health and operators. A new connection replaces the one that has waited longest without a request.",
      ),
    maxConnectionsPerAddress: count()
      .default(250)
      .describe(
        "Most TCP connections of one address at a time; an IPv6 /64 counts as one. Does not apply to loopback and to trustedProxies, which many clients share.",
      ),
    maxConnectionsPerClient: count()
      .default(250)
      .describe(
        "Most connections on which one authenticated client has requests or event streams open. Operators are not limited.",
      ),
    headersTimeoutSeconds: seconds().default(15).describe("Time a client has to send its request headers."),
    requestTimeoutSeconds: seconds()
      .default(30)
      .describe("Time a client has to send its whole request; for a file of a sandbox, the longest pause in it."),
    keepAliveSeconds: seconds()
      .default(15)
      .describe("Pause after which an idle event stream gets a comment, so that proxies keep it open."),
    maxSessions: count().default(10_000).describe("Most MCP sessions at a time, over all clients."),
    sessionIdleSeconds: seconds().default(1800).describe("An MCP session that is not used for this long ends."),
    cors,
    tls,
  })
  .prefault({})
  .describe("The HTTP transport.");

const jwt = z
  .strictObject({
    secret: z
      .string()
      .refine((text) => text === "" || Buffer.byteLength(text) >= 32, "must be at least 32 bytes long")
      .default("")
      .describe("Shared secret for HS256, HS384 and HS512 tokens, at least 32 bytes.")
      .register(fieldFacts, { secret: true, env: ["MCP_AUTH_JWT_SECRET"] }),
    publicKey: z
      .string()
      .default("")
      .describe("Public key for RS, PS, ES and EdDSA tokens: PEM text, or the path of a PEM file.")
      .register(fieldFacts, { path: "pem", env: ["MCP_AUTH_JWT_PUBLIC_KEY"] }),
    jwksUrl: z
      .string()
      .refine(
        (text) => text === "" || isJwksUrl(text),
        "must be an https URL (http is accepted for loopback), without user and password",
      )
      .default("")
      .describe("URL of a JSON Web Key Set; its keys may rotate."),
    audience: z
      .string()
      .default("")
      .describe("The aud claim that tokens must carry. Empty: not checked.")
      .register(fieldFacts, { env: ["MCP_AUTH_AUDIENCE"] }),
    issuer: z
      .string()
      .default("")
      .describe("The iss claim that tokens must carry. Required with jwksUrl; otherwise empty means: not checked.")
      .register(fieldFacts, { env: ["MCP_AUTH_ISSUER"] }),
  })
  .prefault({})
  .describe("How tokens are verified. With auth.enabled, exactly one of secret, publicKey and jwksUrl is set.");

const auth = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe("Asks for a bearer token on every HTTP request.")
      .register(fieldFacts, { env: ["MCP_AUTH_ENABLED"] }),
    jwt,
  })
  .prefault({})
  .describe("Who may call over HTTP.");

const stdio = z
  .strictObject({
    clientId: z
      .string()
      .trim()
      .min(1)
      .max(256)
      .default("stdio")
      .describe("Name of the principal that calls over stdio.")
      .register(fieldFacts, { env: ["MCP_CLIENT_ID"] }),
    maxLineBytes: messageBytes()
      .default(4_194_304)
      .describe("Longest message on stdin; a longer one is refused and skipped."),
  })
  .prefault({})
  .describe("The stdio transport.");

const tools = z
  .strictObject({
    dialects: z
      .array(z.enum(["native", "microsandbox", "open-sandbox"]))
      .default(["native"])
      .describe(
        "Names under which the built-in tools are listed: native, microsandbox, open-sandbox. All can be called.",
      ),
    toolsets: z
      .array(z.enum(["sandbox", "code", "shell", "files", "browser", "browser-extra"]))
      .default([])
      .describe(
        "Groups of built-in tools that are served: sandbox, code, shell, files, browser, browser-extra. Empty: all but browser-extra.",
      ),
    timeoutSeconds: seconds().default(300).describe("Longest time a tool call may take, unless the tool sets its own."),
    progressAfterSeconds: seconds()
      .default(30)
      .describe("Calls that run longer than this report progress to clients that asked for it."),
    maxResultChars: z
      .int()
      .min(200)
      .max(50_000_000)
      .default(25_000)
      .describe("Longest text in a result. The middle of a longer one is cut."),
  })
  .prefault({})
  .describe("Limits of tool calls.");

const guest = z
  .strictObject({
    maxFrameBytes: messageBytes()
      .default(8 * 1024 * 1024)
      .describe("Largest message from inside a sandbox; one that announces more is the end of that sandbox."),
  })
  .prefault({})
  .describe("The agent inside every sandbox.");

const shutdown = z
  .strictObject({
    deadlineSeconds: seconds()
      .default(30)
      .describe("Time that running calls get to finish at shutdown; then they are cancelled."),
  })
  .prefault({})
  .describe("How the server stops.");

/**
 * The only definition of the configuration. Types, validation, JSON Schema, environment variables, the sample file and
 * the documentation are derived from it.
 */
export const configSchema = z
  .strictObject({
    transport: z.enum(["stdio", "http"]).default("stdio").describe("How clients reach the server."),
    mode: z
      .enum(["production", "development"])
      .default("production")
      .describe("development adds stack traces to errors."),
    http,
    auth,
    stdio,
    tools,
    sandbox,
    guest,
    handlers,
    governance,
    store,
    limits,
    cluster,
    ledger,
    alerts,
    skills,
    dashboard,
    shutdown,
    logging,
    telemetry,
  })
  .describe("Configuration of the OwlClaw MCP server.");

export type Config = DeepReadonly<z.output<typeof configSchema>>;

export const DEFAULT_CONFIG: Config = deepFreeze(configSchema.parse({}));
