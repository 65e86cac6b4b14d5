import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { connectHttp, makePlace } from "../e2e/sandbox-client.ts";
import { GuestClient } from "../../src/sandbox/guest-client.ts";
import { GuestStream } from "../../src/sandbox/runtimes/guest-stream.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { type MeasuredServer, startMeasured } from "./loop-delay.ts";
import { type Inside, openInside, textOf } from "./sandbox-lab.ts";
import { answersWith, forge } from "./take-over.ts";

const MIB = 1024 * 1024;
const MAX_GROWTH_BYTES = 64 * MIB;
const RETURNS = { afterwards: "true", timeoutSeconds: 40 };

let server: MeasuredServer;
let maxDelayMs: number;

beforeAll(async () => {
  maxDelayMs = costOfWholeCheck() / 4;
  const sandbox = { root: makePlace().dataFolder, pool: { size: 0 }, maxPerPrincipal: 50 };
  server = await startMeasured("", { sandbox, handlers: {} });
  // What the first call and the first large answer take is not the attack's.
  const inside = await openSandbox();
  await inside.sh("head -c 4000000 /dev/zero | tr '\\0' x > large.txt");
  await inside.call("file_read", { path: "large.txt", max_bytes: 4_000_000 });
  await inside.call("sandbox_destroy");
});

afterAll(() => server.stop());

/** Of a client of its own: after a violation a client waits for its next sandbox. */
async function openSandbox(): Promise<Inside> {
  return await openInside(await connectHttp(`${server.origin}/mcp`));
}

/** Bytes that the server took at most, beyond what it had, while `act` ran. */
async function growthDuring(act: () => Promise<unknown>): Promise<number> {
  const { pid } = server.child;
  // The kernel's own mark of the most memory starts anew.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  const kibibytes = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  const before = kibibytes("VmRSS");
  await act();
  return (kibibytes("VmHWM") - before) * 1024;
}

/** An answer with so many matches, each with 200 values of another kind than agreed. */
const searchAnswer = (matches: number): string =>
  `{"matches":[${`{"path":"a","line":1,"text":"x","before":[${"0,".repeat(199)}0],"after":[]},`.repeat(matches - 1)}{}],"isTruncated":false}`;

/** What a check of the whole answer costs on this machine, now: that of a tenth, ten times. */
function costOfWholeCheck(): number {
  const agreed = z.object({ matches: z.array(z.object({ before: z.array(z.string()) })) });
  const tenth = searchAnswer(1800);
  const startMs = performance.now();
  agreed.safeParse(JSON.parse(tenth));
  return 10 * (performance.now() - startMs);
}

/** No header of a frame. */
const JUNK = String.raw`process.stdout.write("junk\r\n\r\n");`;

/** The number of violations that the server logs with each start after one; the pause doubles with each. */
function violationsOfStarts(): number[] {
  return [...server.log().matchAll(/"message":"sandbox is started again".*"violations":(\d+)/g)].map(([, count]) =>
    Number(count),
  );
}

const SECONDS_MS = 1000;
const ANSWERS_SEARCHES = (result: string): string => answersWith('"matches":', `'"result":' + ${result}`);

describe("a guest that was taken over", () => {
  const searched = (inside: Inside): Promise<string> => inside.call("file_search", { pattern: "x" }).then(textOf);

  test("is ended at the first of 3.6 million values that are not as agreed, and holds nobody up", async () => {
    const inside = await openSandbox();
    await inside.call("file_write", { path: "a", content: "x" });
    const repeated = `'{"path":"a","line":1,"text":"x","before":[' + "0,".repeat(199) + '0],"after":[]},'`;
    const result = `'{"matches":[' + (${repeated}).repeat(17999) + '{}],"isTruncated":false}'`;
    await forge(inside, ANSWERS_SEARCHES(result), RETURNS);
    await server.longestDelayMs();
    let said = "";
    const growth = await growthDuring(async () => (said = await searched(inside)));
    expect(said).toContain("the sandbox ended while the call ran: malformed frame: it holds more than");
    expect(await server.longestDelayMs()).toBeLessThan(maxDelayMs);
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
  });

  test("is ended at the first value of an allowed number that is not as agreed", async () => {
    const inside = await openSandbox();
    await inside.call("file_write", { path: "a", content: "x" });
    const result = `'{"matches":[' + "0,".repeat(49000) + '0],"isTruncated":false}'`;
    await forge(inside, ANSWERS_SEARCHES(result), RETURNS);
    expect(await searched(inside)).toContain("its answer to file.search is not as agreed");
  });

  test.each([
    ["answer", `'{"matches":[],"filesSearched":1,"isTruncated":false,"junk":1}'`],
    [
      "part of an answer",
      `'{"matches":[{"path":"a","line":1,"text":"x","before":[],"after":[],"junk":1}],"isTruncated":false}'`,
    ],
  ])("is ended for an %s with more in it than was agreed", async (_what, result) => {
    const inside = await openSandbox();
    await inside.call("file_write", { path: "a", content: "x" });
    await forge(inside, ANSWERS_SEARCHES(result), RETURNS);
    expect(await searched(inside)).toContain("its answer to file.search is not as agreed");
  });

  const output = (more: string): string =>
    `'{"jsonrpc":"2.0","method":"output","params":{"callId":"x","stream":"stdout","text":"x"${more}'`;
  const flood = (body: string): string => `
    const body = ${body};
    const frame = "Content-Length: " + body.length + "\\r\\n\\r\\n" + body;
    const send = () => process.stdout.write(frame, send);
    send();`;

  test.each([
    [
      "values that nobody asked for in its output",
      flood(`${output(',"junk":[')} + "{},".repeat(2700000) + "{}]}}"`),
      /more than 50000 values/,
    ],
    ["something in its output that nobody asked for", flood(output(',"junk":1}}')), /an output that is not as agreed/],
    ["something beside its output", flood(output('},"junk":1}')), /an output that is not as agreed/],
    ["output that nobody waits for", flood(output("}}")), /more output than a guest sends/],
    [
      "more small outputs than a call has",
      `
      const write = process.stdout.write.bind(process.stdout);
      const id = process.env;
      process.stdout.write = (text, ...rest) => {
        const callId = /"callId":"([\\w-]{16})"/.exec(text)?.[1];
        if (callId === undefined) return write(text, ...rest);
        const body = '{"jsonrpc":"2.0","method":"output","params":{"callId":"' + callId + '","stream":"stdout","text":"x"}}';
        const send = () => write("Content-Length: " + body.length + "\\r\\n\\r\\n" + body, send);
        return send();
      };`,
      /more output than a guest sends/,
    ],
  ])("is ended for %s", async (_what, expression, reason) => {
    const inside = await openSandbox();
    let said = "";
    await server.longestDelayMs();
    const growth = await growthDuring(async () => {
      said = await forge(inside, expression, {
        afterwards: "while :; do echo running; sleep 0.2; done",
        timeoutSeconds: 40,
      });
    });
    expect(said).toContain("the sandbox ended while the call ran");
    expect(said).toMatch(reason);
    expect(await server.longestDelayMs()).toBeLessThan(maxDelayMs);
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    expect(await inside.sh("echo again")).toBe("again\n");
  });

  test("waits twice as long for each start of its sandbox, also of a new one; another client does not", async () => {
    const client = await connectHttp(`${server.origin}/mcp`);
    const before = violationsOfStarts().length;
    const startedAtMs = performance.now();
    const broken = await openInside(client);
    await forge(broken, JUNK);
    await broken.call("sandbox_destroy");
    await forge(await openInside(client), JUNK);
    expect(performance.now() - startedAtMs).toBeGreaterThan((1 + 2) * SECONDS_MS);
    await forge(await openSandbox(), JUNK);
    expect(violationsOfStarts().slice(before)).toEqual([1, 2, 1]);
  });

  test("does not fill the server's memory with a line without end for its log", async () => {
    const inside = await openSandbox();
    const endless = `
      const line = "x".repeat(1024 * 1024);
      const { writeSync } = process.getBuiltinModule("fs");
      for (let sent = 0; sent < 256; ) {
        try { writeSync(2, line); sent += 1; } catch {}
      }`;
    const growth = await growthDuring(() => forge(inside, endless, RETURNS));
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
  });
});

test("a frame that comes byte by byte takes little more memory than its bytes", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const BYTES = 131_072;
  let left = BYTES;
  const fromGuest = new Readable({
    read() {
      if (left === 0) return;
      left -= 1;
      // A buffer of its own for each byte, as a pipe gives it.
      this.push(Buffer.from(new Uint8Array([0x78]).buffer));
    },
  });
  fromGuest.push(`Content-Length: ${8 * BYTES}\r\n\r\n`);
  const stream = new GuestStream(new Writable({ write: (_chunk, _encoding, done) => done() }), fromGuest);
  const before = used();
  const guest = new GuestClient({ stream, maxFrameBytes: 8 * MIB, logger: SILENT_LOGGER });
  onTestFinished(() => guest.fail("the test is over"));
  await vi.waitUntil(() => left === 0, 120_000);
  expect((used() - before) / BYTES).toBeLessThan(100);
});
