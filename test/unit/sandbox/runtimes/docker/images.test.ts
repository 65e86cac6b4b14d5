import { expect, test } from "vitest";
import { askImage } from "../../../../../src/sandbox/runtimes/docker/images.ts";
import { fakeEngine } from "./fake-engine.ts";

const ID = "a".repeat(64);

test("an image that starts and then says nothing is given up when its time is over, and nothing of it is left", async () => {
  const { host, server, asked } = await fakeEngine((request, response) => {
    response.end(request.url?.startsWith("/containers/create") === true ? JSON.stringify({ Id: ID }) : "");
  });
  const hungUp = new Promise<void>((resolve) => {
    server.on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 UPGRADED\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n");
      socket
        .resume()
        .on("error", () => undefined)
        .on("end", resolve);
    });
  });
  const question = { name: "box:1", id: "sha256:1", seccomp: "", volumes: [], timeoutMs: 2000 };
  await expect(askImage(host, question)).rejects.toMatchObject({
    kind: "sandbox_unavailable",
    message: "the image box:1 cannot be started: it does not answer",
    retryable: true,
  });
  await hungUp;
  expect(asked.at(-1)).toBe(`DELETE /containers/${ID}?force=1&v=1`);
  expect([...host.own]).toEqual([]);
});
