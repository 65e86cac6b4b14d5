import type { ServerResponse } from "node:http";
import { expect, test, vi } from "vitest";
import { makeContainer } from "../../../../../src/sandbox/runtimes/docker/containers.ts";
import { removeStrays } from "../../../../../src/sandbox/runtimes/docker/reap.ts";
import { fakeEngine } from "./fake-engine.ts";

const ID = "a".repeat(64);
const STRAY = "b".repeat(64);
/** Its image has the labels of this server. */
const FOREIGN = "c".repeat(64);
const CREATE = expect.stringMatching(/^POST \/containers\/create\?name=owlclaw-[0-9a-f]{16}-[0-9a-f]{32}$/) as unknown;

test("a container whose making takes too long is given up, and removed when it is there after all", async () => {
  let late: ServerResponse | undefined;
  const { host, asked } = await fakeEngine((request, response) => {
    if (request.method === "POST") late = response;
    else response.writeHead(204).end();
  });
  await expect(makeContainer(host, { json: {}, timeoutMs: 2000 })).rejects.toMatchObject({
    message: expect.stringContaining("it does not answer") as unknown,
    facts: { reason: "engine_down" },
    retryable: true,
  });
  expect(asked).toEqual([CREATE]);
  late?.end(JSON.stringify({ Id: ID }));
  await vi.waitFor(() => expect(asked).toEqual([CREATE, `DELETE /containers/${ID}?force=1&v=1`]), 20_000);
  expect([...host.own, ...host.leftovers, ...host.making]).toEqual([]);
});

test("one that the engine lists before it has told of it is no stray", async () => {
  let making: ServerResponse | undefined;
  const { host, asked } = await fakeEngine((request, response) => {
    if (request.method === "DELETE") response.writeHead(204).end();
    else if (request.method === "POST") making = response;
    else {
      const Labels = host.ownership.labels("cell", "owl-1");
      const Names = [`/${host.ownership.containerName()}`];
      const foreign = { Id: FOREIGN, Names: ["/owlclaw-0123456789abcdef-0"], Labels };
      const own = [ID, STRAY].map((Id) => ({ Id, Names, Labels }));
      response.end(JSON.stringify([...own, foreign]), () => {
        making?.end(JSON.stringify({ Id: ID }));
      });
    }
  });
  const made = makeContainer(host, { json: {} });
  await vi.waitFor(() => expect(making).toBeDefined(), 20_000);
  await removeStrays(host);
  expect(await made).toBe(ID);
  expect(asked.filter((call) => call.startsWith("DELETE"))).toEqual([`DELETE /containers/${STRAY}?force=1&v=1`]);
  expect([...host.own]).toEqual([ID]);
});

test("when an answer is lost there may be a stray, until somebody has looked", async () => {
  const { host } = await fakeEngine((request, response) => {
    if (request.method === "POST") response.destroy();
    else response.end("[]");
  });
  await expect(makeContainer(host, { json: {} })).rejects.toMatchObject({ facts: { reason: "engine_down" } });
  expect(host.doubt).toEqual({ isThere: true });
  await removeStrays(host);
  expect(host.doubt).toEqual({ isThere: false });
});
