import type { Client } from "@modelcontextprotocol/client";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeWithEngine } from "../containers/with-engine.ts";
import { containers } from "../containers/engine-runtime.ts";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { forge } from "../escape/take-over.ts";
import { bubblewrap, type TestRuntime } from "../escape/test-runtime.ts";

/** One guest that was taken over floods the server, again and again, beside ten honest clients. */
const CLIENTS = 10;
const CALLS = 60;
const PACE_MS = 100;
const ROUNDS = 3;
const MAX_RATIO = 1.5;

const FRAME = JSON.stringify({
  jsonrpc: "2.0",
  method: "output",
  params: { callId: "x", stream: "stdout", text: "x" },
});
const FLOODS = [
  `const body = ${JSON.stringify(FRAME)}; const frame = "Content-Length: " + body.length + "\\r\\n\\r\\n" + body;
   const send = () => process.stdout.write(frame, send); send();`,
  `const body = '{"jsonrpc":"2.0","method":"output","params":{"callId":"x","junk":[' + "{},".repeat(2700000) + '{}]}}';
   const frame = "Content-Length: " + body.length + "\\r\\n\\r\\n" + body;
   const send = () => process.stdout.write(frame, send); send();`,
  `const one = Buffer.from("C"); const send = () => process.stdout.write(one, send); send();`,
];

/** How long each call of an honest client took, at a pace that leaves the machine idle between them. */
async function paced(inside: Inside): Promise<number[]> {
  const times: number[] = [];
  for (let call = 0; call < CALLS; call += 1) {
    const nextMs = performance.now() + PACE_MS;
    const startMs = performance.now();
    expect((await inside.call("file_read", { path: "kept.txt" })).isError).toBeUndefined();
    times.push(performance.now() - startMs);
    await pause(Math.max(0, nextMs - performance.now()));
  }
  return times;
}

function p99(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function defineHostileGuestLoad(runtime: TestRuntime): void {
  let server: Server;
  let honest: Inside[];
  let hostile: Client;

  beforeAll(async () => {
    const sandbox = { maxPerPrincipal: 50, ...runtime.settings(), pool: { size: 0 } };
    server = new Server(makePlace(runtime.account()), { sandbox });
    const url = await server.url();
    honest = [];
    for (let index = 0; index < CLIENTS; index += 1) {
      const inside = await openInside(await connectHttp(url));
      await inside.call("file_write", { path: "kept.txt", content: "kept" });
      honest.push(inside);
    }
    hostile = await connectHttp(url);
  });

  afterAll(async () => void (await server.stop()));

  async function attackUntil(over: AbortSignal): Promise<number> {
    const inside = await openInside(hostile);
    let floods = 0;
    for (; !over.aborted; floods += 1) await forge(inside, FLOODS[floods % FLOODS.length] ?? "").catch(() => "");
    return floods;
  }

  test("ten honest clients have an answer as fast as without it", async () => {
    const window = async (): Promise<number> => p99((await Promise.all(honest.map(paced))).flat());
    await window();
    const [calm, flooded]: [number[], number[]] = [[], []];
    let floods = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      calm.push(await window());
      const over = new AbortController();
      const attack = attackUntil(over.signal);
      flooded.push(await window());
      over.abort();
      floods += await attack;
    }
    const ratio = median(flooded) / median(calm);
    console.log(
      `honest p99 ${median(calm).toFixed(1)} ms, beside ${floods} floods ${median(flooded).toFixed(1)} ms: ${ratio.toFixed(2)}`,
    );
    expect(floods).toBeGreaterThanOrEqual(ROUNDS);
    expect(ratio).toBeLessThan(MAX_RATIO);
  });
}

describe.skipIf(process.getuid?.() !== 0)("on bubblewrap as root (needs root)", () => {
  defineHostileGuestLoad(bubblewrap("root", () => undefined));
});

describe("on bubblewrap as an ordinary user", () => {
  let account: Account;
  beforeAll(() => {
    account = makeOrdinaryAccount();
  });
  afterAll(() => account.remove());
  defineHostileGuestLoad(bubblewrap("user", () => account));
});

describeWithEngine("docker", (engine) => defineHostileGuestLoad(containers(engine)));
describeWithEngine("podman", (engine) => defineHostileGuestLoad(containers(engine)));
