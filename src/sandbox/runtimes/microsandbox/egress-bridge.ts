import { connect } from "node:net";
import { pipeline } from "node:stream";
import { creditedLine } from "./credited-line.ts";
import { type HostLine, openLine } from "./host-line.ts";

/** What leaves a machine for the egress proxy; the proxy itself decides about each call. */
export async function openEgressBridge(folder: string, egressSocket: string): Promise<HostLine> {
  return await openLine(folder, (socket) => {
    const { input, output } = creditedLine(socket);
    const proxy = connect({ path: egressSocket, allowHalfOpen: true });
    // Either end may go away at any time: the other one then hears it.
    pipeline(output, proxy, (error) => {
      if (error !== null && error !== undefined) proxy.destroy();
    });
    pipeline(proxy, input, (error) => {
      if (error !== null && error !== undefined) socket.destroy();
    });
  });
}
