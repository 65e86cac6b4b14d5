/** Every way a call can fail. `docs/reference/errors.md` is generated from this table. */
export interface ErrorKindFacts {
  /** The JSON-RPC code by era: revisions up to 2025-11-25 and plain clients, then 2026-07-28 and later. */
  readonly code: number;
  readonly modernCode: number;
  /**
   * Revisions whose clients get a result with `isError: true`, which a model can repair, instead of a protocol error.
   */
  readonly toolError: "never" | "since 2025-11-25" | "since 2026-07-28" | "always";
  readonly retryable: boolean;
  readonly httpStatus: number;
  /** What the reader can do next. */
  readonly suggestion: string;
}

export const ERROR_KINDS = {
  parse_error: kind(-32700, 400, "Send one JSON-RPC 2.0 message in valid UTF-8 JSON."),
  invalid_request: kind(
    -32600,
    400,
    'Send an object with jsonrpc "2.0", a method, and an id that is a string or an integer.',
  ),
  method_not_found: kind(-32601, 404, "Call a method that the server's capabilities name."),
  invalid_params: kind(-32602, 400, "Correct the parameters named in the message and send the request again."),
  invalid_arguments: {
    ...kind(-32602, 400, "Correct the arguments named in the message and call the tool again."),
    toolError: "since 2025-11-25",
  },
  internal: { ...kind(-32603, 500, "Look up the trace id in the server's log."), retryable: true },
  unsupported_version: {
    ...kind(-32602, 400, "Use one of the versions in data.supported."),
    modernCode: -32022,
  },
  header_mismatch: kind(-32020, 400, "Send the MCP headers with the same values as the body."),
  missing_capability: kind(
    -32021,
    400,
    "Declare the capabilities in data.requiredCapabilities and send the request again.",
  ),
  resource_limit: {
    ...kind(-32600, 429, "Free what you no longer use, or wait, and try again."),
    toolError: "since 2026-07-28",
    retryable: true,
  },
  tool_not_found: { ...kind(-32001, 404, "Call tools/list for the tools that exist."), modernCode: -32602 },
  resource_not_found: {
    ...kind(-32002, 404, "Call resources/list for the resources that exist."),
    modernCode: -32602,
  },
  prompt_not_found: kind(-32602, 404, "Call prompts/list for the prompts that exist."),
  task_not_found: kind(-32602, 404, "The task ended its life or never was yours: start the call again."),
  governance_denied: {
    ...kind(-32003, 403, "Read data.rule and data.reason; ask the operator to change the policy."),
    modernCode: -31003,
  },
  paused: {
    ...kind(-32003, 403, "An operator has paused your calls: stop, and go on when the operator has resumed them."),
    modernCode: -31003,
  },
  timeout: {
    ...kind(-32004, 504, "Ask for less at once, or raise tools.timeoutSeconds."),
    modernCode: -32603,
    toolError: "since 2026-07-28",
    retryable: true,
  },
  execution_error: {
    ...kind(-32005, 500, "Read the message: the tool itself failed."),
    modernCode: -32603,
    toolError: "since 2026-07-28",
  },
  session_not_found: { ...kind(-32600, 404, "Create a new session and go on there."), toolError: "always" },
  session_elsewhere: {
    ...kind(
      -32600,
      409,
      "The sandbox is not on this server, and its own cannot be reached: create a new session and go on there.",
    ),
    toolError: "always",
  },
  sandbox_taken_over: {
    ...kind(-32005, 409, "An operator works in this sandbox: wait until it is given back, or use another one."),
    modernCode: -32603,
    toolError: "always",
    retryable: true,
  },
  tool_failure: {
    ...kind(-32005, 422, "Read the message, change what it names, and call the tool again."),
    modernCode: -32603,
    toolError: "always",
  },
  sandbox_unavailable: kind(
    -32603,
    503,
    "Sandboxes cannot run on this machine as it is: correct what the message names and start the server again.",
  ),
  store_unavailable: {
    ...kind(
      -32603,
      503,
      "The server cannot record calls at the moment, so it answers none: try again, and tell the operator.",
    ),
    retryable: true,
  },
  cancelled: kind(-32800, 499, "The request was cancelled by the client."),
  unauthorized: kind(-32600, 401, "Send a valid bearer token."),
  forbidden: kind(-32600, 403, "Use a token that carries the scope named in the message."),
  starting: { ...kind(-32603, 503, "The server is starting: try again in a moment."), retryable: true },
  shutting_down: { ...kind(-32603, 503, "The server is stopping: connect again in a moment."), retryable: true },
  overloaded: { ...kind(-32603, 503, "Wait a moment and try again."), retryable: true },
  too_many_attempts: { ...kind(-32600, 429, "Wait as long as the message says, then try again."), retryable: true },
  unsupported_media_type: kind(-32600, 415, "Send the header Content-Type: application/json."),
  method_not_allowed: kind(-32600, 405, "Use one of the methods in the Allow header."),
  route_not_found: kind(-32600, 404, "The MCP endpoint is /mcp."),
  too_large: kind(-32600, 413, "Send less at once, or raise http.maxBodyBytes."),
} as const satisfies Record<string, ErrorKindFacts>;

export type ErrorKind = keyof typeof ERROR_KINDS;

function kind(code: number, httpStatus: number, suggestion: string) {
  return { code, modernCode: code, toolError: "never", retryable: false, httpStatus, suggestion } as const;
}
