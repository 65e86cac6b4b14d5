import type { Principal } from "../auth/principal.ts";

/** Who calls, and over what. One per connection, session or stateless request. */
export interface Caller {
  readonly principal: Principal;
  /** `X-MCP-Client-ID`: anyone can send it, so it proves nothing and may only tighten limits. */
  readonly label: string | undefined;
  readonly transport: "stdio" | "http" | "sse" | "local";
  readonly protocolVersion: string;
  /** The MCP session, where the transport has one. */
  readonly sessionId: string | undefined;
}
