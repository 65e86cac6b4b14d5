import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, newFolder, SECRET, token } from "../integration/governance-lab.ts";
import { type HttpServer, startHttp, until } from "../integration/harness.ts";
import { text } from "../integration/wire-messages.ts";

/**
 * Handlers in sandboxes serve several clients. What a client's text makes a handler print, and what a child process of a
 * handler reads or writes, must not reach the calls of another client.
 */
let server: HttpServer;
let tokens: Readonly<Record<"ada" | "bob", string>>;

beforeAll(async () => {
  server = await startHttp({
    handlers: "worker-frames",
    config: {
      auth: { enabled: true, jwt: { secret: SECRET } },
      sandbox: { root: newFolder(), pool: { size: 0 }, limits: "best-effort" },
      handlers: {
        paths: [new URL("../fixtures/worker-frames", import.meta.url).pathname],
        isolation: "sandbox",
        watch: false,
      },
      governance: { defaults: { callsPerMinute: 100_000, monthlyBudget: 1000 } },
    },
  });
  tokens = { ada: await token("ada"), bob: await token("bob") };
});
afterAll(() => server.stop());

async function ask(who: "ada" | "bob", name: string, args: Record<string, unknown> = {}): Promise<string> {
  return text((await call(server.url, name, args, { token: tokens[who] })).body) ?? "";
}

interface Seen {
  readonly worker: string;
  readonly held: readonly string[];
}

async function look(who: "ada" | "bob", language: string): Promise<Seen> {
  return JSON.parse(await ask(who, `look_${language}`));
}

/** Every frame that would change a pending call, for each number that it may have. */
const FORGED = Array.from({ length: 200 }, (_, id) => [
  { t: "charge", id, amount: 7 },
  { t: "done", id, value: "forged" },
])
  .flat()
  .map((frame) => `\n${JSON.stringify(frame)}\n`)
  .join("");

describe.each(["ts", "py"])("a handler in %s that runs in a sandbox", (language) => {
  test.each(["print", "print_by_child", "write_to_worker"])(
    "cannot answer another client's call by %s",
    async (attack) => {
      const secret = `${attack} of ada`;
      const pending = ask("ada", `hold_${language}`, { secret });
      await until(
        () => look("ada", language),
        ({ held }) => held.includes(secret),
      );
      await ask("bob", `${attack}_${language}`, { text: FORGED });
      await ask("ada", `release_${language}`, { secret });
      expect(await pending).toBe(`kept ${secret.length}`);
    },
  );

  test("gives its children neither another client's calls nor the protocol's descriptors", async () => {
    const reading = ask("bob", `read_by_child_${language}`);
    const done = new AbortController();
    void reading.finally(() => done.abort());
    while (!done.signal.aborted) await ask("ada", `release_${language}`, { secret: "what only ada may know" });
    const read = await reading;
    expect(read).not.toContain("only ada may know");
    const open = read.match(/(?<=^\/proc\/self\/fd\/)\d+$/gm) ?? [];
    // The shell opens one to list its own folder.
    expect(open.filter((name) => Number(name) > 2).length).toBeLessThanOrEqual(1);
  });

  test("has a worker of its own for each client, with nothing of another in it", async () => {
    const [ada, bob] = [await look("ada", language), await look("bob", language)];
    expect(bob.worker).not.toBe(ada.worker);
    expect(bob.held).toEqual([]);
    expect(ada.held.length).toBeGreaterThan(0);
    expect((await look("ada", language)).worker).toBe(ada.worker);
  });
});

test("more clients than there are workers are all served, each by a worker that served no other", async () => {
  const clients = await Promise.all(Array.from({ length: 7 }, async (_, n) => token(`client-${n}`)));
  const answers = await Promise.all(clients.map((bearer) => call(server.url, "look_ts", {}, { token: bearer })));
  const seen = answers.map(({ body }): Seen => JSON.parse(text(body) ?? "{}"));
  expect(new Set(seen.map(({ worker }) => worker)).size).toBe(clients.length);
  expect(seen.flatMap(({ held }) => held)).toEqual([]);
});

test("a message with so many values that it would hold up the server ends the worker unread", async () => {
  const { body } = await call(server.url, "many_ts", { count: 2_000_000 }, { token: tokens.bob });
  expect(JSON.stringify(body)).toContain("it holds more than 50000 values");
  expect(await ask("bob", "many_ts", { count: 20_000 })).toContain("{}");
});

test("no forged frame has charged anybody", async () => {
  for (const who of ["ada", "bob"] as const) {
    const { body } = await call(server.url, "look_ts", {}, { token: tokens[who] });
    expect(body.result?.["_meta"]?.["owlclaw/quota"]?.budget?.remaining).toBeGreaterThan(999);
  }
});
