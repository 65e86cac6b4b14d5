import { isAbsolute, relative } from "node:path";
import type { ConfigIssue } from "./config-error.ts";
import type { Origin } from "./candidate.ts";
import { showValue } from "./mask.ts";
import type { Config } from "./schema.ts";
import { parseVolume } from "./volume.ts";
import { isLoopbackHost } from "./value-rules.ts";

/** A violated rule that involves several keys. It is not reported while one of these keys has an issue itself. */
interface Finding {
  readonly path: string;
  readonly value: unknown;
  readonly involves: readonly string[];
  readonly reason: string;
  readonly fix: string;
}

export interface RuleContext {
  readonly config: Config;
  readonly originOf: (path: string) => Origin;
  readonly isBroken: (path: string) => boolean;
}

export function checkRules({ config, originOf, isBroken }: RuleContext): ConfigIssue[] {
  const findings = [
    ...authFindings(config),
    ...listenFindings(config),
    ...socketFindings(config),
    ...tlsFindings(config),
    ...timeFindings(config),
    ...sharingFindings(config),
    ...volumeFindings(config),
  ];
  return findings
    .filter(({ path, involves }) => ![path, ...involves].some(isBroken))
    .map(({ path, value, reason, fix }) => {
      const { layer, source } = originOf(path);
      return { path, value: showValue(path, value), reason, fix, layer, source };
    });
}

/**
 * A sandbox without network could write data to a shared folder, or to a socket in it, and a sandbox with network could
 * send it out.
 */
function* volumeFindings({ sandbox }: Config): Iterable<Finding> {
  const { allow, templates, shareVolumes } = sandbox.network;
  const networks = [allow, ...Object.values(templates)];
  const isMixed = networks.some((hosts) => hosts.length > 0) && networks.some((hosts) => hosts.length === 0);
  const writable = sandbox.volumes.filter((text) => !parseVolume(text, sandbox.workspace).isReadOnly);
  if (!isMixed || shareVolumes || writable.length === 0) return;
  yield {
    path: "sandbox.volumes",
    value: writable,
    involves: ["sandbox.network.allow", "sandbox.network.templates"],
    reason: "some templates have a network and some have none, and all of them may write to these folders",
    fix: "mount them read-only with :ro, give all templates a network or none, or set sandbox.network.shareVolumes to true",
  };
}

const KEY_SOURCES = ["auth.jwt.secret", "auth.jwt.publicKey", "auth.jwt.jwksUrl"];

function* authFindings({ auth }: Config): Iterable<Finding> {
  if (!auth.enabled) return;
  const { secret, publicKey, jwksUrl, issuer } = auth.jwt;
  const values = [secret, publicKey, jwksUrl];
  const given = KEY_SOURCES.filter((_, index) => values[index] !== "");
  if (given.length === 0) {
    yield {
      path: "auth.enabled",
      value: true,
      involves: KEY_SOURCES,
      reason: "no key is set that tokens could be verified with",
      fix: "set one of auth.jwt.secret (MCP_AUTH_JWT_SECRET), auth.jwt.publicKey (MCP_AUTH_JWT_PUBLIC_KEY) or auth.jwt.jwksUrl",
    };
  }
  if (jwksUrl !== "" && issuer === "") {
    yield {
      path: "auth.jwt.issuer",
      value: "",
      involves: ["auth.jwt.jwksUrl"],
      reason: "a key set may sign for several issuers, and a sub is unique for one of them only",
      fix: "set auth.jwt.issuer (MCP_AUTH_ISSUER) to the iss of your tokens",
    };
  }
  if (given.length > 1) {
    yield {
      path: "auth.enabled",
      value: true,
      involves: KEY_SOURCES,
      reason: `${given.join(" and ")} are all set, and only one may decide which tokens are valid`,
      fix: "keep one of them and remove the others",
    };
  }
}

function* listenFindings({ transport, http, auth }: Config): Iterable<Finding> {
  if (transport !== "http" || auth.enabled || http.allowUnauthenticated || http.socket !== "") return;
  if (isLoopbackHost(http.host)) return;
  yield {
    path: "http.host",
    value: http.host,
    involves: ["transport", "auth.enabled", "http.allowUnauthenticated"],
    reason: "this address is reachable from other machines, and nothing asks callers who they are",
    fix: "set auth.enabled with a key, or http.host to localhost, or accept it by name with --allow-unauthenticated (MCP_SERVER_ALLOW_UNAUTHENTICATED=true)",
  };
}

/**
 * A Unix socket conflicts with `store.url`, because other servers forward calls to an address, and with TLS, which is
 * for connections between machines.
 */
function* socketFindings({ transport, http: { socket, tls }, store, sandbox }: Config): Iterable<Finding> {
  if (transport !== "http" || socket === "") return;
  const volume = sandbox.volumes.find((text) => isWithin(parseVolume(text, sandbox.workspace).hostPath, socket));
  if (volume !== undefined) {
    yield {
      path: "http.socket",
      value: socket,
      involves: ["sandbox.volumes"],
      reason: `the socket would be inside the mounted folder ${volume}, where sandboxes could connect to the server`,
      fix: "choose a path outside of mounted folders",
    };
  }
  const other = tls.certFile !== "" ? "http.tls.certFile" : store.url !== "" ? "store.url" : undefined;
  if (other === undefined) return;
  yield {
    path: "http.socket",
    value: socket,
    involves: [other],
    reason: `${other} is set, which needs a server that listens on a port`,
    fix: `remove http.socket, or ${other}`,
  };
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith("../") && !isAbsolute(way);
}

function* tlsFindings({ http: { tls } }: Config): Iterable<Finding> {
  const involves = ["http.tls.certFile", "http.tls.keyFile"];
  if (tls.certFile !== "" && tls.keyFile === "") {
    yield {
      path: "http.tls.keyFile",
      value: "",
      involves,
      reason: "http.tls.certFile is set, and a certificate is useless without its private key",
      fix: "set http.tls.keyFile to the PEM file of the private key",
    };
  }
  if (tls.keyFile !== "" && tls.certFile === "") {
    yield {
      path: "http.tls.certFile",
      value: "",
      involves,
      reason: "http.tls.keyFile is set, and a private key is useless without its certificate",
      fix: "set http.tls.certFile to the PEM file of the certificate",
    };
  }
}

/** Servers that work together need all of these settings: the store, the cluster key and their addresses. */
function* sharingFindings({ store, cluster, http }: Config): Iterable<Finding> {
  if (store.url === "" && cluster.key !== "") {
    yield {
      path: "store.url",
      value: "",
      involves: ["cluster.key"],
      reason: "cluster.key is for several servers, and each of them would count calls and money for itself",
      fix: "set store.url to the postgres:// URL that all of them count in",
    };
  }
  if (cluster.url !== "" && cluster.key === "") {
    yield {
      path: "cluster.url",
      value: cluster.url,
      involves: ["cluster.key"],
      reason: "nobody can prove to be another server without cluster.key",
      fix: "set cluster.key to the same secret on all servers",
    };
  }
  if (cluster.key !== "" && cluster.url === "" && /^(0\.0\.0\.0|::|\[::\])$/.test(http.host)) {
    yield {
      path: "cluster.url",
      value: "",
      involves: ["cluster.key", "http.host"],
      reason: `the server listens on ${http.host}, which is no address that another server could call`,
      fix: "set cluster.url to the address of this server, such as http://10.0.0.5:8080",
    };
  }
}

function* timeFindings({ http }: Config): Iterable<Finding> {
  if (http.headersTimeoutSeconds <= http.requestTimeoutSeconds) return;
  yield {
    path: "http.headersTimeoutSeconds",
    value: http.headersTimeoutSeconds,
    involves: ["http.requestTimeoutSeconds"],
    reason: `the headers are part of the request, which has only ${http.requestTimeoutSeconds} seconds in all`,
    fix: "set it to at most http.requestTimeoutSeconds",
  };
}
