import type { Mcp } from "./mcp.ts";
import { PeerServer } from "./peer-server.ts";
import type { PeerTransport } from "./peer-transport.ts";

/** Puts an SDK server for the revisions with a handshake on a line. */
export async function attachServer(
  mcp: Mcp,
  transport: PeerTransport,
  { followsChanges }: { readonly followsChanges: boolean },
): Promise<PeerServer> {
  const server = new PeerServer({ mcp, era: "legacy", factsOf: ({ mcpReq }) => transport.factsOf(mcpReq.id) });
  await server.connect(transport);
  if (followsChanges) server.followChanges();
  return server;
}
