import { connect } from "node:net";
import { pipeline } from "node:stream";
import { creditedStream } from "./credited-stream.ts";
import { type HostSocket, openHostSocket } from "./host-socket.ts";

/** What leaves a machine for the egress proxy; the proxy itself decides about each call. */
export async function openEgressBridge(folder: string, egressSocket: string): Promise<HostSocket> {
  return await openHostSocket(folder, (socket) => {
    const { input, output } = creditedStream(socket);
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
