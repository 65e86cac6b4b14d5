import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CorpusRequest, INITIALIZE, METHODS, NOTIFICATIONS, pathsOf, replaced, WRONG_VALUES } from "./corpus.ts";
import { type Door, httpDoor, type Message, sseDoor, stdioDoor } from "./fuzz-doors.ts";
import { callTool } from "./http-client.ts";
import { type Due, dueFor } from "./json-rpc-oracle.ts";
import { type HttpServerProcess, type ServerProcess, spawnServer, startHttp } from "./server.ts";

const SEED = 20_260_728;
const MAX_PROBLEMS = 5;
/** All of it goes through one door, and a share through each of the others: behind them is one engine (docs/decisions/023). */
const WHOLE = "plain";
const SHARE = process.env["OWLCLAW_TEST_LONG"] === "1" ? 1 : 5;
const DOORS = ["plain", "session", "modern", "sse", "stdio plain", "stdio session", "stdio modern"] as const;

let http: HttpServerProcess;
const stdio: ServerProcess[] = [];
const doors = new Map<string, Door>();

beforeAll(async () => {
  http = await startHttp({ config: { logging: { level: "info" } } });
  for (const kind of ["plain", "session", "modern"] as const) {
    doors.set(kind, await httpDoor(http.origin, kind));
    const process = await spawnServer({ transport: "stdio", config: { logging: { level: "info" } } });
    stdio.push(process);
    await process.logged("server started");
    doors.set(`stdio ${kind}`, await stdioDoor(process.child, kind));
  }
  doors.set("sse", await sseDoor(http.origin));
});

afterAll(async () => {
  for (const door of doors.values()) door.close();
  await Promise.all([http, ...stdio].map((server) => server.stop()));
});

function doorOf(name: string): Door {
  const door = doors.get(name);
  if (door === undefined) throw new Error(`no door ${name}`);
  return door;
}

interface Shot {
  readonly body: Buffer;
  readonly request?: CorpusRequest;
}

function shot(request: CorpusRequest, id: unknown = 1): Shot {
  return { body: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, ...request })), request };
}

/** What goes through this door: everything, or a share that differs from door to door. */
function shareOf<T>({ name }: Door, all: readonly T[], whole: string): readonly T[] {
  const at = DOORS.findIndex((door) => door === name);
  return name === whole ? all : all.filter((_, index) => index % SHARE === at % SHARE);
}

/** Sends everything and says what was answered wrongly; a door that can do several at once gets eight. */
async function fireAll(door: Door, shots: readonly Shot[], whole = WHOLE): Promise<string[]> {
  const queue = shareOf(door, shots, whole).values();
  const problems: string[] = [];
  const worker = async (): Promise<void> => {
    for (const one of queue) {
      // A line that is dead stays dead: what comes after tells nothing new.
      if (problems.length >= MAX_PROBLEMS) return;
      const problem = await fire(door, one);
      if (problem !== undefined) problems.push(problem);
    }
  };
  await Promise.all(Array.from({ length: door.isParallel ? 8 : 1 }, worker));
  return problems;
}

async function fire(door: Door, { body, request }: Shot): Promise<string | undefined> {
  const shown = body.toString("latin1").slice(0, 200);
  try {
    const { status, messages } = await door.send(body, request);
    const problem = problemOf(dueFor(body), { door, body, status, messages });
    if (problem === undefined) return undefined;
    return `${problem}\n  sent:     ${shown}\n  answered: ${status} ${JSON.stringify(messages).slice(0, 600)}`;
  } catch (error) {
    return `no answer to ${shown}: ${String(error)}`;
  }
}

interface Observed {
  readonly door: Door;
  readonly body: Buffer;
  readonly status: number | undefined;
  readonly messages: readonly Message[];
}

function problemOf(due: Due, { door, body, status, messages }: Observed): string | undefined {
  if (status !== undefined && ![200, 202, 400, 404].includes(status)) return `status ${status}`;
  const [first, ...more] = messages;
  if (door.name.startsWith("stdio") && body.toString("latin1").trim() === "") return undefined;
  if (more.length > 0) return "more than one answer";
  if (due.kind === "batch") return batchProblem(due.items, first);
  if (due.kind === "silence")
    return first === undefined || isRefusal(first) ? silenceProblem(door, first) : "an answer to a notification";
  if (first === undefined) return "no answer";
  return answerProblem(due, first);
}

/** A notification is never answered; only HTTP may say that it could not accept it, without an id. */
function silenceProblem(door: Door, first: Message): string | undefined {
  if (first === undefined) return undefined;
  return door.isParallel && first.id === null ? shapeProblem(first) : "an answer to a notification";
}

function isRefusal(message: Message): boolean {
  return typeof message === "object" && message !== null && "error" in message;
}

function answerProblem(due: Exclude<Due, { kind: "batch" | "silence" }>, message: Message): string | undefined {
  const problem = shapeProblem(message);
  if (problem !== undefined) return problem;
  if (due.kind === "answer") return message.id === due.id ? undefined : `the id is not ${JSON.stringify(due.id)}`;
  if (!isRefusal(message)) return "a result for what is no request";
  if (!due.ids.includes(message.id)) return `the id is none of ${JSON.stringify(due.ids)}`;
  return due.codes.includes(message.error.code) ? undefined : `the code is none of ${due.codes.join(", ")}`;
}

/** Revisions without batches refuse the whole; the others answer each item that wants an answer. */
function batchProblem(items: readonly Due[], first: Message): string | undefined {
  const wanted = items.filter(({ kind }) => kind !== "silence");
  if (first === undefined) return wanted.length === 0 ? undefined : "no answer to a batch";
  if (!Array.isArray(first)) return isRefusal(first) ? shapeProblem(first) : "one result for a batch";
  if (first.length !== wanted.length) return `${first.length} answers to ${wanted.length} requests`;
  return first.map(shapeProblem).find((problem) => problem !== undefined);
}

function shapeProblem(message: Message): string | undefined {
  if (message?.jsonrpc !== "2.0") return "no JSON-RPC answer";
  if ("result" in message === "error" in message) return "neither or both of result and error";
  if ("result" in message)
    return typeof message.result === "object" && message.result !== null ? undefined : "a result that is no object";
  const { code, message: text, data } = message.error;
  if (!Number.isInteger(code) || typeof text !== "string" || text === "") return "an error without code and message";
  if (typeof data?.kind !== "string" || !/^[0-9a-f]{32}$/.test(data?.trace_id))
    return "an error without kind and trace_id";
  if (data.kind === "internal" || code === -32603) return "an internal error";
  return "stack" in data ? "a stack" : undefined;
}

async function expectHealthy(door: Door): Promise<void> {
  const request = door.shape({ method: "tools/call", params: { name: "echo", arguments: { text: "still here" } } });
  const { messages } = await door.send(shot(request, "good").body, request);
  expect(messages).toMatchObject([{ id: "good", result: { content: [{ text: "still here" }] } }]);
}

const GOOD: readonly CorpusRequest[] = [...METHODS, INITIALIZE];

describe.each(DOORS)("%s", (name) => {
  test("random bytes", async () => {
    const door = doorOf(name);
    const runs = door.isParallel ? 300 : 100;
    const bytes = fc.sample(fc.uint8Array({ maxLength: 300 }), { seed: SEED, numRuns: runs });
    const text = fc.sample(fc.string({ unit: "binary", maxLength: 200 }), { seed: SEED, numRuns: runs });
    const shots = [...bytes.map((value) => Buffer.from(value)), ...text.map((value) => Buffer.from(value))];
    expect(
      await fireAll(
        door,
        shots.map((body) => ({ body })),
      ),
    ).toEqual([]);
    await expectHealthy(door);
  });

  test("random JSON, whole and inside of a request", async () => {
    const door = doorOf(name);
    const values = fc.sample(fc.jsonValue({ maxDepth: 6 }), { seed: SEED, numRuns: door.isParallel ? 400 : 120 });
    expect(
      await fireAll(
        door,
        values.flatMap((value, index) => {
          const request = GOOD[index % GOOD.length] ?? INITIALIZE;
          const id = index % 2 === 0 ? index : `id ${index}`;
          const filled = { method: request.method, params: { ...request.params, fuzz: value, arguments: value } };
          return [
            { body: Buffer.from(JSON.stringify(value)) },
            { body: Buffer.from(JSON.stringify([value, value])) },
            shot(door.shape(filled), id),
            shot({ method: JSON.stringify(value).slice(0, 50), params: { value } }, id),
            { body: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: value, method: "ping" })) },
          ];
        }),
      ),
    ).toEqual([]);
    await expectHealthy(door);
  });

  test("a good request, cut off at every byte", async () => {
    const door = doorOf(name);
    const request = door.shape({
      method: "tools/call",
      params: { name: "typed", arguments: { text: "\u00fc\u{1F989}\\u0041", count: 1 } },
    });
    const { body } = shot(request, "cut");
    expect(
      await fireAll(
        door,
        Array.from({ length: body.length }, (_, end) => ({ body: body.subarray(0, end), request })),
      ),
    ).toEqual([]);
    await expectHealthy(door);
  });

  test("wrong values in every field of every method", async () => {
    const door = doorOf(name);
    const bent = [...GOOD, ...NOTIFICATIONS].flatMap((request) => {
      const whole = {
        jsonrpc: "2.0",
        ...(NOTIFICATIONS.includes(request) ? {} : { id: "bent" }),
        ...door.shape(request),
      };
      return pathsOf(whole).flatMap((path) =>
        [undefined, ...WRONG_VALUES].map((wrong) => ({ whole: replaced(whole, path, wrong), request })),
      );
    });
    // A line that is answered one by one takes no more than this.
    const share = door.isParallel ? bent : bent.filter((_, index) => index % 13 === DOORS.indexOf(name));
    const shots = share.map(({ whole, request }) => ({
      body: Buffer.from(JSON.stringify(whole)),
      request: door.shape(request),
    }));
    // With its envelope this door has the most fields.
    expect(await fireAll(door, shots, "modern")).toEqual([]);
    await expectHealthy(door);
  });

  test("hostile texts", async () => {
    const door = doorOf(name);
    expect(
      await fireAll(
        door,
        HOSTILE.map((body) => ({ body: Buffer.isBuffer(body) ? body : Buffer.from(body) })),
      ),
    ).toEqual([]);
    await expectHealthy(door);
  });
});

const request = (params: string, id = "1"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
const echo = (text: string): string => request(`{"name":"echo","arguments":{"text":${text}}}`);

const HOSTILE: readonly (string | Buffer)[] = [
  "[".repeat(100_000),
  '{"a":'.repeat(100_000),
  `${"[".repeat(199)}${"]".repeat(199)}`,
  `${"[".repeat(5000)}${"]".repeat(5000)}`,
  request(`{"name":"echo","arguments":${'{"a":'.repeat(150)}1${"}".repeat(150)}}`),
  request(`{"name":"echo","arguments":${'{"a":'.repeat(5000)}1${"}".repeat(5000)}}`),
  request(`{"name":"echo","_meta":${"[".repeat(190)}${"]".repeat(190)}}`),
  ...["1e400", "-1e400", "1e-400", "123456789012345678901234567890", "0.1", "-0", "9007199254740992", "1E+2"].map(
    (id) => request('{"name":"whoami"}', id),
  ),
  ...["1e400", "-0", "1e-400", "123456789012345678901234567890"].map((value) =>
    request(`{"name":"typed","arguments":{"text":"a","count":${value}}}`),
  ),
  '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}',
  '{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"ping"}',
  '{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":[]}',
  request('{"name":"echo","name":"whoami","arguments":{"text":"a"},"arguments":{}}'),
  request('{"name":"typed","arguments":{"text":"a","count":1,"__proto__":{"isAdmin":true}}}'),
  request('{"name":"typed","arguments":{"__proto__":{"text":"a","count":1}}}'),
  request('{"__proto__":{"name":"echo"},"arguments":{}}'),
  request(
    '{"name":"typed","arguments":{"text":"a","count":1,"anything":{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}}}',
  ),
  '{"__proto__":{"jsonrpc":"2.0","method":"ping"},"id":1}',
  '{"jsonrpc":"2.0","id":1,"method":"ping","constructor":{"prototype":{"isAdmin":true}}}',
  '{"jsonrpc":"2.0","id":"__proto__","method":"ping"}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"__proto__"}}',
  '{"jsonrpc":"2.0","id":"constructor","result":{}}',
  '{"jsonrpc":"2.0","id":0,"result":{}}',
  '{"jsonrpc":"2.0","id":99999,"error":{"code":1,"message":"x"}}',
  '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
  '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
  echo('"\\ud800"'),
  echo('"\\udc00\\ud800"'),
  echo('"\\u0000"'),
  echo('"\u0000"'),
  echo('"\u007f\u2028\u2029\ufeff"'),
  `\ufeff${echo('"bom"')}`,
  echo(`"${"x".repeat(1_000_000)}"`),
  echo(`"${"\\u0000".repeat(50_000)}"`),
  request(`{"name":"${"x".repeat(500_000)}"}`),
  request('{"name":"whoami"}', `"${"i".repeat(500_000)}"`),
  request(`{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":${index}`).join(",")}}`),
  `[${Array.from({ length: 1001 }, () => '{"jsonrpc":"2.0","id":1,"method":"ping"}').join(",")}]`,
  "[[]]",
  "[null,1,[],{}]",
  '{"jsonrpc":"2.0","id":1,"method":"ping"}}',
  '{"jsonrpc":"2.0","id":1,"method":"ping"},',
  "{'jsonrpc':'2.0'}",
  "NaN",
  "undefined",
  "\u0000",
  "   ",
  Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"method":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
  Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","id":"'),
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from('","method":"ping"}'),
  ]),
  Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('","method":"ping"}')]),
  Buffer.from(echo('"utf-16"'), "utf16le"),
];

test("after all of it nothing is left behind: no crash, no error in the log, no polluted prototype", async () => {
  const { json } = await callTool(http.origin, "vitals");
  expect(json.result.structuredContent.isPolluted).toBe(false);
  for (const server of [http, ...stdio]) {
    expect(server.child.exitCode).toBeNull();
    expect(
      server
        .log()
        .split("\n")
        .filter((line) => line.includes('"level":"error"')),
    ).toEqual([]);
  }
});
