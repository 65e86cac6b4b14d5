import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { withoutLedger } from "./governance-lab.ts";

const ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 20 : 3;
const CLIENTS = 4;
/** More than one page, so that some of it is on its way before its end. */
const LARGE = randomBytes(600_000);

async function open(place: ReturnType<typeof makePlace>) {
  const server = new Server(place, {});
  const url = await server.url();
  const client = await connectHttp(url);
  const { structuredContent } = await call(client, "sandbox_create");
  const files = `${new URL(url).origin}/api/sandboxes/${String(structuredContent?.["session_id"])}/files`;
  return { server, url, files };
}

describe("a ledger that cannot be written", () => {
  const place = makePlace();
  let door: Awaited<ReturnType<typeof open>>;

  beforeAll(async () => {
    door = await open(place);
    await fetch(`${door.files}/large`, { method: "PUT", body: LARGE });
    await fetch(`${door.files}/small`, { method: "PUT", body: "small" });
  });
  afterAll(() => door.server.stop());

  /** A server that knows of it refuses at the door: each asks one that does not. */
  async function askBroken<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await withoutLedger(place.dataFolder, ask);
    } finally {
      expect((await fetch(`${door.files}/small`)).status).toBe(200);
    }
  }

  test("answers no PUT", async () => {
    const answer = await askBroken(() => fetch(`${door.files}/new`, { method: "PUT", body: "new" }));
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { error: { data: { kind: "store_unavailable" } } },
    ]);
  });

  test.each(["GET", "HEAD"])("answers no %s of a small file", async (method) => {
    const answer = await askBroken(() => fetch(`${door.files}/small`, { method }));
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain("small");
  });

  test("lets no large file pass as whole", async () => {
    const whole = askBroken(async () => (await (await fetch(`${door.files}/large`)).arrayBuffer()).byteLength);
    await expect(whole).rejects.toThrow("terminated");
    const again = await fetch(`${door.files}/large`);
    expect(Buffer.from(await again.arrayBuffer()).equals(LARGE)).toBe(true);
  });
});

test(
  "[004-R8.2] after kill -9 every file that was wholly sent or taken is in the ledger",
  async () => {
    const place = makePlace();
    for (let round = 0; round < ROUNDS; round += 1) {
      const { server, files } = await open(place);
      const answered = await filesUntilKilled({ server, files, round });
      const reader = await openReader({ config: ledgerConfig(), dataFolder: place.dataFolder });
      const rows = await reader.list({}, { limit: 10_000 });
      const report = await reader.verify({});
      await reader.close();
      expect(report.problems).toEqual([]);
      const recorded = new Set(rows.map(({ name, args }) => `${name} ${pathOf(args)}`));
      expect(answered.filter((each) => !recorded.has(each))).toEqual([]);
    }
  },
  ROUNDS * 30_000,
);

function pathOf(args: string): string {
  const { path } = JSON.parse(args) as { readonly path?: string };
  return String(path);
}

/** Which files were wholly answered, as the ledger would name them. */
async function filesUntilKilled(run: {
  readonly server: Server;
  readonly files: string;
  readonly round: number;
}): Promise<readonly string[]> {
  const { server, files, round } = run;
  const answered: string[] = [];
  const atLeast = 12 + 5 * round;
  let sent = 0;
  const client = async (): Promise<void> => {
    while (answered.length < atLeast) {
      const name = `${round}-${(sent += 1)}`;
      const body = sent % 2 === 0 ? LARGE : "small";
      try {
        await (await fetch(`${files}/${name}`, { method: "PUT", body })).arrayBuffer();
        answered.push(`file_write ${name}`);
        if ((await (await fetch(`${files}/${name}`)).arrayBuffer()).byteLength === body.length)
          answered.push(`file_read ${name}`);
      } catch {
        // Killed in the middle: nobody has the whole.
        return;
      }
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  await Promise.race(clients);
  await server.stop("SIGKILL");
  await Promise.all(clients);
  return answered;
}
