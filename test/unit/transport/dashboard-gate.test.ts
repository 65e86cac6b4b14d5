import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { LazyDashboard } from "../../../src/transport/http/dashboard-listener.ts";
import { readTarget } from "../../../src/transport/http/request-target.ts";

type Open = ConstructorParameters<typeof LazyDashboard>[0];

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Asks through a real server; 500 stands for whatever the gate throws. */
async function asker(open: Open): Promise<() => Promise<number>> {
  const gate = new LazyDashboard(open);
  const server = createServer((request, response) => {
    gate.handle(request, response, readTarget(request)).catch(() => response.writeHead(500).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return async () => (await fetch(`http://127.0.0.1:${port}/dashboard`)).status;
}

test("a dashboard that could not be opened is tried again, and opened once for all who come then", async () => {
  const open = vi
    .fn<Open>()
    .mockRejectedValueOnce(new Error("the page's files cannot be read"))
    .mockResolvedValue({
      handle: async (_request, response) => void response.writeHead(204).end(),
    });
  const ask = await asker(open);
  expect(await ask()).toBe(500);
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([204, 204, 204]);
  expect(open).toHaveBeenCalledTimes(2);
});
