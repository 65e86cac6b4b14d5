import * as http from "node:http";
import * as https from "node:https";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";

const MAX_ANSWER_BYTES = 65_536;

// Loaded with `node --require` into every Node process of a sandbox with network access. It is CommonJS because the ESM loader
// makes each start some milliseconds slower.
//
// With NODE_USE_ENV_PROXY=1, Node 24.5 and later read the proxy variables themselves; then this file does nothing.
// Otherwise neither `fetch` nor `http.request` uses them. This file keeps Node's `fetch` and replaces its agent by one whose
// `connect` requests a tunnel of the proxy.

type Done<T> = (error: Error | null, socket: T | null) => void;

interface Destination {
  readonly host: string;
  readonly port: number;
}

const DISPATCHER = Symbol.for("undici.globalDispatcher.1");
const { env } = process;
const direct = new Set((env["NO_PROXY"] ?? env["no_proxy"] ?? "").split(",").map((name) => bare(name.trim())));
const proxy = readProxy(env["HTTPS_PROXY"] ?? env["https_proxy"] ?? env["HTTP_PROXY"] ?? env["http_proxy"] ?? "");

if (proxy !== undefined && !knowsProxyVariables()) {
  installFetch(proxy);
  useAgent(http, (to, _options, done) => openSocket(proxy, to, done));
  useAgent(https, (to, options, done) => openSecureSocket(proxy, { ...to, options }, done));
}

function knowsProxyVariables(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return env["NODE_USE_ENV_PROXY"] === "1" && (major > 24 || (major === 24 && minor >= 5));
}

function readProxy(text: string): Destination | undefined {
  try {
    const { hostname, port } = new URL(text);
    return { host: bare(hostname), port: Number(port === "" ? 80 : port) };
  } catch {
    // There is no proxy variable, or its value is invalid.
    return undefined;
  }
}

function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}

/** undici, which implements `fetch`, is loaded at its first use and takes 20 ms; so this is loaded lazily too. */
function installFetch(through: Destination): void {
  const native = globalThis.fetch;
  let isReady = false;
  globalThis.fetch = async (...request) => {
    if (!isReady) {
      isReady = true;
      useTunnels(through);
    }
    return await native(...request);
  };
}

interface FetchConnectOptions {
  readonly hostname: string;
  readonly port: string;
  readonly protocol: string;
  readonly servername?: string | null;
}

function useTunnels(through: Destination): void {
  // Accessing the class loads undici, which sets its default agent.
  const isLoaded = typeof globalThis.Response === "function";
  const agent: unknown = isLoaded ? Reflect.get(globalThis, DISPATCHER) : undefined;
  // A program with its own undici has set its own agent, which is kept.
  if (typeof agent !== "object" || agent === null || !isNodesOwn(agent)) return;
  const connectForFetch = (options: FetchConnectOptions, done: Done<Socket>): void => {
    const isSecure = options.protocol === "https:";
    const to = { host: options.hostname, port: Number(options.port === "" ? (isSecure ? 443 : 80) : options.port) };
    const servername = options.servername ?? "";
    if (isSecure) openSecureSocket(through, { ...to, options: servername === "" ? {} : { servername } }, done);
    else openSocket(through, to, done);
  };
  Reflect.set(globalThis, DISPATCHER, Reflect.construct(agent.constructor, [{ connect: connectForFetch }]));
}

/** The class of Node's agent is not exported; its location is taken from a stack trace. */
function isNodesOwn(agent: object): boolean {
  const prepareStackTrace: unknown = Reflect.get(Error, "prepareStackTrace");
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 10;
  Error.prepareStackTrace = (_error, frames) => frames.map((frame) => frame.getFileName()).join();
  try {
    Reflect.construct(agent.constructor, [{ factory: "none" }]);
    return false;
  } catch (error) {
    return error instanceof Error && String(error.stack).includes("node:internal/deps/undici");
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

/** Connects to a host: through the proxy, or directly to servers inside the sandbox. */
function openSocket(through: Destination, to: Destination, done: Done<Socket>): void {
  const host = bare(to.host);
  if (direct.has(host)) {
    const socket = connect({ host, port: to.port, noDelay: true });
    whenReady(socket, "connect", done);
    return;
  }
  const socket = connect({ ...through, noDelay: true });
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${to.port}`;
  whenReady(socket, "connect", (error) => {
    if (error !== null) return done(error, null);
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    readAnswer(socket, done);
  });
}

function openSecureSocket(
  through: Destination,
  to: Destination & { readonly options: ConnectionOptions },
  done: Done<TLSSocket>,
): void {
  openSocket(through, to, (error, socket) => {
    if (socket === null) return done(error, null);
    const servername = isIP(bare(to.host)) === 0 ? { servername: to.host } : {};
    const secured = connectTls({ ALPNProtocols: ["http/1.1"], ...servername, ...to.options, socket });
    whenReady(secured, "secureConnect", done);
  });
}

function whenReady<T extends Socket>(socket: T, event: "connect" | "secureConnect", done: Done<T>): void {
  const finish = (error: Error | null): void => {
    socket.off(event, onReady);
    socket.off("error", finish);
    done(error, error === null ? socket : null);
  };
  const onReady = (): void => finish(null);
  socket.on(event, onReady);
  socket.on("error", finish);
}

/** Reads the proxy's answer to CONNECT; a refusal becomes an error with its text. */
function readAnswer(socket: Socket, done: Done<Socket>): void {
  let bytes = Buffer.alloc(0);
  const finish = (error: Error | null): void => {
    socket.off("data", onData);
    socket.off("end", onEnd);
    socket.off("error", finish);
    // Not paused: the caller could not know that it must resume. The server sends nothing before the client does.
    if (error !== null) socket.destroy();
    done(error, error === null ? socket : null);
  };
  const onEnd = (): void => {
    const text = bytes.toString("utf8");
    const body = text.slice(text.indexOf("\r\n\r\n") + 4).trim();
    finish(new Error(body === "" ? "the egress proxy closed the connection" : body));
  };
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    const isAccepted = bytes.toString("latin1", 0, 13) === "HTTP/1.1 200 ";
    if (isAccepted && bytes.includes("\r\n\r\n")) finish(null);
    else if (bytes.length > MAX_ANSWER_BYTES) onEnd();
  };
  socket.on("data", onData);
  socket.on("end", onEnd);
  socket.on("error", finish);
}

type OpenFor = (to: Destination, options: ConnectionOptions, done: Done<Socket>) => void;

/** For programs that call `http.request` and `https.request` without an agent. */
function useAgent(library: typeof http | typeof https, open: OpenFor): void {
  const agent = new library.Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
  const defaultPort = library === https ? 443 : 80;
  const createConnection = (options: ConnectionOptions, done: Done<Socket>): void => {
    const { host = "localhost", port = defaultPort, ...rest } = options;
    // In the options of a connection, `path` is a unix socket; here it is the path of the request.
    open({ host, port }, { ...rest, path: undefined }, done);
  };
  Object.assign(agent, { createConnection });
  // The namespace object is read-only; its default export is the module itself.
  Object.assign(Reflect.get(library, "default") ?? library, { globalAgent: agent });
}
