import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { ADMIN_SCOPE } from "../../../src/auth/principal.ts";
import { ERROR_KINDS } from "../../../src/errors/kinds.ts";
import { toOwlError } from "../../../src/errors/owl-error.ts";
import { ROUTES } from "../../../src/transport/http/http-routes.ts";
import { LedgerEndpoint } from "../../../src/transport/http/ledger-endpoint.ts";
import { readTarget } from "../../../src/transport/http/request-target.ts";
import { RouteTable } from "../../../src/transport/http/route-table.ts";
import { entry } from "../governance/ledger/ledger-entry.ts";
import { appendMany, dataFolder, openTestLedger, REFUSED } from "../governance/ledger/ledger-fixture.ts";

/** The routes behind a real server, as an operator finds them. */
async function served(): Promise<(path: string) => Promise<Response>> {
  const { ledger } = await openTestLedger(dataFolder());
  await appendMany(ledger, 7);
  await ledger.append(entry({ ...REFUSED, principal: "bob" }));
  const endpoints = { ledger: new LedgerEndpoint({ ledger }) } as Parameters<(typeof ROUTES)[number]["of"]>[0];
  const table = new RouteTable(ROUTES.flatMap((row) => row.of(endpoints) ?? []));
  const server = createServer((request, response) => {
    const target = readTarget(request);
    const match = table.find(target.path);
    const principal = { id: "root", scopes: [ADMIN_SCOPE], claims: {} };
    const exchange = { request, response, principal, label: undefined, traceId: "", release: () => undefined };
    const serving = (async () => match?.routes[0]?.serve(exchange, { ...target, parts: match.parts }))();
    serving.catch((thrown: unknown) => {
      const error = toOwlError(thrown);
      response.writeHead(ERROR_KINDS[error.kind].httpStatus).end(error.message);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  return (path) => fetch(`http://127.0.0.1:${port}${path}`);
}

test("lists in pages, newest first, by filter", async () => {
  const get = await served();
  const seqs = async (path: string): Promise<unknown> => {
    const { rows, next } = (await (await get(path)).json()) as { rows: { seq: number }[]; next?: number };
    return [rows.map(({ seq }) => seq), next];
  };
  expect(await seqs("/api/ledger?limit=5")).toEqual([[8, 7, 6, 5, 4], 4]);
  expect(await seqs("/api/ledger?limit=5&after=4")).toEqual([[3, 2, 1], undefined]);
  expect(await seqs("/api/ledger?decision=deny&client=bob")).toEqual([[8], undefined]);
  expect((await get("/api/ledger?limit=501")).status).toBe(400);
  expect((await get("/api/ledger?from=once")).status).toBe(400);
});

test("one row, the export and the verification", async () => {
  const get = await served();
  expect(await (await get("/api/ledger/3")).json()).toMatchObject({ seq: 3, args: { index: 2 } });
  expect((await get("/api/ledger/99")).status).toBe(404);
  const exported = await get("/api/ledger/export?format=csv&client=ada");
  expect(exported.headers.get("content-disposition")).toBe('attachment; filename="ledger.csv"');
  expect((await exported.text()).trimEnd().split("\r\n")).toHaveLength(8);
  expect((await get("/api/ledger/export?format=xml")).status).toBe(400);
  expect(await (await get("/api/ledger/verify")).json()).toMatchObject({ isIntact: true, rows: 8 });
  expect(await (await get(`/api/ledger/verify?head=9:${"0".repeat(64)}`)).json()).toMatchObject({ isIntact: false });
  expect((await get("/api/ledger/verify?head=9")).status).toBe(400);
});
