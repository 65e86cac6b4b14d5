import { OwlError } from "../../errors/owl-error.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { type HttpExchange, sendEmpty, sendJson } from "./exchange-io.ts";
import type { RouteRequest } from "./route-table.ts";

/**
 * The sandboxes of all clients. Operators identify them by name: the session id gives access to a sandbox, and only its
 * owner knows it.
 */
export interface OperatorSandboxes {
  list(): readonly OperatorView[];
  /** Returns whether the sandbox existed. */
  destroy(
    name: string,
    by: { readonly by: string; readonly transport: "http"; readonly traceId: string },
  ): Promise<boolean>;
}

/** Sent in responses unchanged. */
interface OperatorView {
  readonly name: string;
}

export interface OperatorSandboxesOptions {
  readonly mcp: Mcp;
  readonly sandboxes: OperatorSandboxes;
}

const MAX_NAME_CHARS = 128;

/** `GET /api/sandboxes` and `DELETE /api/sandboxes/{name}`. The router has checked the operator's scope. */
export class OperatorSandboxesEndpoint {
  readonly #options: OperatorSandboxesOptions;

  constructor(options: OperatorSandboxesOptions) {
    this.#options = options;
  }

  list({ response }: HttpExchange): void {
    const sandboxes = this.#options.sandboxes.list();
    sendJson(response, 200, { sandboxes }, { "cache-control": "private, no-store" });
  }

  async destroy({ response, principal, traceId }: HttpExchange, { parts: [name = ""] }: RouteRequest): Promise<void> {
    const { mcp, sandboxes } = this.#options;
    const isDestroyed =
      name.length <= MAX_NAME_CHARS &&
      (await sandboxes.destroy(name, { by: principal.id, transport: "http", traceId }));
    if (!isDestroyed) {
      throw new OwlError("session_not_found", "no sandbox has this name", {
        hint: "use a name that GET /api/sandboxes lists; the session_id of a sandbox is not its name",
      });
    }
    mcp.logger.info("an operator destroyed a sandbox", { trace_id: traceId, principal: principal.id, sandbox: name });
    sendEmpty(response, 204);
  }
}
