import { connect } from "node:net";
import { Failure } from "../../failure.ts";
import { within } from "./within.ts";
import type { Frame, Request, Response } from "playwright-core";

const START_SERVER =
  "start the server in this sandbox first (shell_exec with background: true), and wait until it listens";
const NO_NETWORK =
  "there is no network in this sandbox: only servers started in it, such as http://localhost:3000, can be reached";
/** The proxy names the host; only the operator can allow it. */
const ASK_FOR_HOST = "only the hosts in network.allow can be reached: ask the operator to add it";
const TRY_LATER = "check its name and port, or try again later";
const NOT_FOUND =
  /ERR_(?:NAME_NOT_RESOLVED|INTERNET_DISCONNECTED|ADDRESS_UNREACHABLE|NETWORK_ACCESS_DENIED|NETWORK_CHANGED|ICANN_NAME_COLLISION)/;
const PROXY_TIMEOUT_MS = 3000;

interface NavigationFacts {
  readonly address: string;
  readonly timeoutMs: number;
  readonly proxyPort: number | undefined;
}

type Explanation = readonly [
  kind: "unreachable" | "refused_by_policy" | "bad_certificate" | "bad_address" | "timeout",
  reason: string,
  hint: string,
];

const BY_CODE: ReadonlyArray<readonly [pattern: RegExp, explanation: Explanation]> = [
  [/ERR_CONNECTION_REFUSED/, ["unreachable", "nothing listens there", START_SERVER]],
  [
    /ERR_(?:CONNECTION_RESET|CONNECTION_CLOSED|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)/,
    [
      "unreachable",
      "the server closed the connection without an answer",
      "check that the server is up and speaks HTTP at that port",
    ],
  ],
  [
    /ERR_CERT_\w+/,
    [
      "bad_certificate",
      "its certificate is not trusted",
      "use http:// for a server of your own, or a host with a certificate that is trusted",
    ],
  ],
  [
    /ERR_SSL_\w+/,
    [
      "unreachable",
      "the server does not speak TLS, or not as browsers do",
      "use http:// for a server that has no certificate",
    ],
  ],
  [/ERR_TOO_MANY_REDIRECTS/, ["unreachable", "it redirects in a circle", "open the page that it should lead to"]],
  [/ERR_FILE_NOT_FOUND/, ["bad_address", "there is no such file", "list the workspace with file_list"]],
  [
    /ERR_UNSAFE_PORT/,
    ["bad_address", "browsers refuse that port", "let the server listen at another port, such as 3000 or 8080"],
  ],
  [
    /ERR_(?:TIMED_OUT|CONNECTION_TIMED_OUT)/,
    ["timeout", "the server did not answer in time", "try again, or check that the server is up"],
  ],
  [
    /ERR_(?:UNKNOWN_URL_SCHEME|INVALID_URL|DISALLOWED_URL_SCHEME)|invalid URL/,
    ["bad_address", "the browser cannot open such an address", "use http:// or https://"],
  ],
  [
    /ERR_ABORTED|interrupted by another navigation/,
    [
      "unreachable",
      "the navigation was broken off, by the page or by an answer without a page",
      "call browser_snapshot to see where the browser is",
    ],
  ],
];

/** The browser's error for a page that did not load, as a message with a hint. */
export async function explainNavigation(error: unknown, facts: NavigationFacts): Promise<unknown> {
  if (error instanceof Failure || !(error instanceof Error)) return error;
  const { address, proxyPort } = facts;
  if (/ERR_(?:TUNNEL|PROXY)_CONNECTION_FAILED/.test(error.message)) {
    return await askProxy(address, proxyPort);
  }
  const explanation = explanationOf(error, facts);
  if (explanation === undefined) return error;
  const [kind, reason, hint] = explanation;
  return new Failure(kind, `${address.slice(0, 300)}: ${reason}`, hint);
}

/** Answers of the proxy look like answers of a server; they name the refused host, or the failure for an allowed one. */
export function explainProxyAnswer(phrase: string, proxyPort: number | undefined): Failure | undefined {
  if (proxyPort === undefined) return undefined;
  if (phrase.startsWith("egress refused")) return new Failure("refused_by_policy", phrase, ASK_FOR_HOST);
  return phrase.startsWith("egress failed")
    ? new Failure("unreachable", phrase, `the host is allowed: ${TRY_LATER}`)
    : undefined;
}

function explanationOf({ name, message }: Error, { timeoutMs, proxyPort }: NavigationFacts): Explanation | undefined {
  if (name === "TimeoutError") {
    const hint = "raise timeout_seconds, or use wait_until: domcontentloaded or commit and look with browser_snapshot";
    return ["timeout", `it did not load in ${timeoutMs / 1000} s`, hint];
  }
  if (NOT_FOUND.test(message)) {
    if (proxyPort !== undefined) return ["unreachable", "there is no such host", "check the address"];
    return [
      "refused_by_policy",
      NO_NETWORK,
      "use a server in the sandbox, or ask the operator to add the host to network.allow",
    ];
  }
  const code = /ERR_\w+/.exec(message)?.[0];
  const known = BY_CODE.find(([pattern]) => pattern.test(message))?.[1];
  if (known === undefined) {
    return code === undefined ? undefined : ["unreachable", code, "check the address, and that its server is up"];
  }
  const [kind, reason, hint] = known;
  return [kind, code === undefined ? reason : `${reason} (${code})`, hint];
}

/** The browser does not report why a tunnel was refused; this asks the proxy again. */
async function askProxy(address: string, port: number | undefined): Promise<Failure> {
  const { hostname, port: given, protocol } = new URL(address);
  const target = `${hostname}:${given === "" ? (protocol === "https:" ? 443 : 80) : given}`;
  const fallback = new Failure("unreachable", `the egress proxy made no connection to ${target}`, TRY_LATER);
  if (port === undefined) return fallback;
  const socket = connect(port, "127.0.0.1");
  const answer = new Promise<string>((resolve, reject) => {
    socket.setEncoding("latin1");
    socket.once("data", (chunk) => resolve(String(chunk)));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed")));
  });
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  try {
    const [line = ""] = (await within(answer, PROXY_TIMEOUT_MS)).split("\r\n");
    const phrase = line.replace(/^HTTP\/1\.[01] \d+ ?/, "");
    return explainProxyAnswer(phrase, port) ?? fallback;
  } catch {
    return fallback;
  } finally {
    socket.destroy();
  }
}

/** A page that did not load, or loaded with an error status. */
export interface LoadFailure {
  readonly request: Request;
  readonly answer?: { readonly status: number; readonly phrase: string };
}

/** A navigation that was aborted by a download or by the next page is no failure. */
export function failureOfRequest(request: Request): LoadFailure | undefined {
  return request.failure()?.errorText.includes("ERR_ABORTED") === true ? undefined : { request };
}

export function failureOfResponse(response: Response): LoadFailure | undefined {
  const status = response.status();
  return status < 400 ? undefined : { request: response.request(), answer: { status, phrase: response.statusText() } };
}

/** The frame that a request navigates; absent for other requests, and before its tab is known. */
export function navigatingFrame(request: Request): Frame | undefined {
  try {
    return request.isNavigationRequest() ? request.frame() : undefined;
  } catch {
    // A request of a page that is not loaded yet, or of a worker, has no frame.
    return undefined;
  }
}

/** As a sentence with a hint. */
export async function describeLoadFailure(
  { request, answer }: LoadFailure,
  proxyPort: number | undefined,
): Promise<string> {
  const address = request.url().slice(0, 300);
  const failure =
    answer === undefined
      ? await explainNavigation(new Error(request.failure()?.errorText), { address, timeoutMs: 0, proxyPort })
      : explainProxyAnswer(answer.phrase, proxyPort);
  if (failure instanceof Failure) return `the page did not open: ${failure.message}; ${failure.data.hint}`;
  if (answer === undefined) return `the page did not open: ${address}`;
  const next = answer.status >= 500 ? "look at its log, or try again later" : "check the address";
  return `the server answered ${answer.status} for ${address}; ${next}; browser_snapshot shows what the page says`;
}
