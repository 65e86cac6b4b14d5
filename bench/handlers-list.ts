import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { HttpConnection } from "./http-connection.ts";
import { atLeast, atMost, type Goal, toTable } from "./report.ts";
import { callHeaders, encode, META_2026 } from "./requests.ts";
import { ServerProcess } from "./server-process.ts";
import { median } from "./statistics.ts";
import { MAIN } from "./targets.ts";

const LISTED = 100;
const STARTED = 200;
/** In one slice of a round. Linux counts CPU time in hundredths of a second: the faster one needs more to be seen. */
const LISTS = { owlclaw: 600, "sdk-v2-handler": 60 } as const;
const SLICES = 4;
const CONNECTIONS = 8;
const STARTS = 5;
/** A second on a machine that starts Node in 40 ms: as a ratio, the goal holds on slower and busier ones too. */
const MAX_START_IN_NODE_STARTS = 25;

type Door = "http-2026" | "http-plain";
const DOORS: readonly Door[] = ["http-2026", "http-plain"];

export interface ListCase {
  readonly door: Door;
  readonly server: "owlclaw" | "sdk-v2-handler";
  readonly listsPerSecond: number;
  readonly cpuMicrosPerList: number;
}

export interface HandlerResults {
  readonly cases: readonly ListCase[];
  readonly startMs: { readonly node: number; readonly bare: number; readonly withHandlers: number };
  /** From a changed file to the list that shows it, with so many files around it. */
  readonly reloadMs: number;
}

export async function measureHandlers(options: {
  readonly rounds: number;
  readonly log: (line: string) => void;
}): Promise<HandlerResults> {
  const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-handlers-"));
  try {
    const listed = await writeHandlers(path.join(folder, "listed"), LISTED);
    const started = await writeHandlers(path.join(folder, "started"), STARTED);
    const bare = await writeHandlers(path.join(folder, "bare"), 0);
    const cases = await measureLists(listed, options);
    options.log("starts");
    const startMs = await measureStarts(bare, started);
    options.log("reloads");
    return { cases, startMs, reloadMs: await measureReload(started, path.join(folder, "started")) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function handlerReport({ cases, startMs, reloadMs }: HandlerResults): string {
  const rows = cases.map(({ door, server, listsPerSecond, cpuMicrosPerList }) => [
    `${door} ${server}`,
    listsPerSecond.toFixed(0),
    cpuMicrosPerList.toFixed(0),
  ]);
  const { node, bare, withHandlers } = startMs;
  return [
    `tools/list of ${LISTED} tools\n${toTable(["server", "lists/s", "CPU µs/list"], rows)}`,
    `start: node -e 0 ${node.toFixed(0)} ms, without handlers ${bare.toFixed(0)} ms, with ${STARTED} unchanged ones ${withHandlers.toFixed(0)} ms`,
    `changed file, one of ${STARTED}: listed after ${reloadMs.toFixed(0)} ms`,
  ].join("\n\n");
}

export function checkHandlerGoals({ cases, startMs: { node, bare, withHandlers } }: HandlerResults): readonly Goal[] {
  const cpu = (door: Door, server: ListCase["server"]): number =>
    cases.find((each) => each.door === door && each.server === server)?.cpuMicrosPerList ?? Number.NaN;
  return [
    ...DOORS.map((door) =>
      atLeast(`${door}: CPU of tools/list in SDK v2, in ours`, cpu(door, "sdk-v2-handler") / cpu(door, "owlclaw"), 10),
    ),
    atMost(
      `start with ${STARTED} unchanged handlers, beyond one without, in starts of Node`,
      (withHandlers - bare) / node,
      MAX_START_IN_NODE_STARTS,
    ),
  ];
}

async function measureLists(
  config: string,
  { rounds, log }: { readonly rounds: number; readonly log: (line: string) => void },
): Promise<readonly ListCase[]> {
  const peer = [path.join(import.meta.dirname, "peers/sdk-v2-tools.mjs"), String(LISTED)];
  const servers = {
    owlclaw: await ServerProcess.startHttp(ours(config)),
    "sdk-v2-handler": await ServerProcess.startHttp(peer),
  } as const;
  const measured = new Map<string, { door: Door; server: ListCase["server"]; perSecond: number[]; cpu: number[] }>();
  try {
    for (let round = 0; round <= rounds; round += 1) {
      log(`round ${round} of ${rounds}`);
      for (const door of DOORS) {
        for (const [server, { lists, seconds, cpuSeconds }] of await listRound(servers, door)) {
          const key = `${door} ${server}`;
          const all = measured.get(key) ?? { door, server, perSecond: [], cpu: [] };
          measured.set(key, all);
          // The first round warms up.
          if (round === 0) continue;
          all.perSecond.push(lists / seconds);
          all.cpu.push((cpuSeconds / lists) * 1e6);
        }
      }
    }
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
  return [...measured.values()].map(({ door, server, perSecond, cpu }) => ({
    door,
    server,
    listsPerSecond: median(perSecond),
    cpuMicrosPerList: median(cpu),
  }));
}

type ServerName = ListCase["server"];

interface Spent {
  readonly lists: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

/** The servers take turns in short slices, so that whatever else the machine does falls on both alike. */
async function listRound(
  servers: Readonly<Record<ServerName, ServerProcess>>,
  door: Door,
): Promise<ReadonlyMap<ServerName, Spent>> {
  const spent = new Map<ServerName, Spent>();
  for (let slice = 0; slice < SLICES; slice += 1) {
    for (const name of ["owlclaw", "sdk-v2-handler"] as const) {
      const before = spent.get(name) ?? { lists: 0, seconds: 0, cpuSeconds: 0 };
      const { seconds, cpuSeconds } = await listSlice(servers[name], door, LISTS[name]);
      spent.set(name, {
        lists: before.lists + LISTS[name],
        seconds: before.seconds + seconds,
        cpuSeconds: before.cpuSeconds + cpuSeconds,
      });
    }
  }
  return spent;
}

async function listSlice(
  server: ServerProcess,
  door: Door,
  lists: number,
): Promise<{ readonly seconds: number; readonly cpuSeconds: number }> {
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => HttpConnection.open(new URL("/mcp", server.origin))),
  );
  const cpuBefore = await server.cpuSeconds();
  const startedAt = performance.now();
  let next = 0;
  const keepAsking = async (connection: HttpConnection): Promise<void> => {
    while (next < lists) {
      next += 1;
      const body = await list(server, connection, { door, id: next });
      if (!body.includes("tool_99")) throw new Error(`tools/list: ${body.slice(0, 500)}`);
    }
  };
  try {
    await Promise.all(connections.map(keepAsking));
  } finally {
    for (const connection of connections) connection.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  return { seconds, cpuSeconds: (await server.cpuSeconds()) - cpuBefore };
}

async function list(
  { origin }: ServerProcess,
  connection: HttpConnection,
  { door, id, cursor }: { readonly door: Door; readonly id: number; readonly cursor?: string },
): Promise<string> {
  const isModern = door === "http-2026";
  const params = { ...(cursor !== undefined && { cursor }), ...(isModern && { _meta: META_2026 }) };
  const body = JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list", params });
  const { "Mcp-Name": _name, ...headers } = callHeaders(door);
  const url = new URL("/mcp", origin);
  const answer = await connection.exchange(
    encode({ method: "POST", url, headers: { ...headers, ...(isModern && { "Mcp-Method": "tools/list" }) }, body }),
  );
  if (answer.status !== 200) throw new Error(`tools/list: ${answer.status} ${answer.body.slice(0, 500)}`);
  return answer.body;
}

async function measureStarts(bare: string, started: string): Promise<HandlerResults["startMs"]> {
  const times = { node: [] as number[], bare: [] as number[], withHandlers: [] as number[] };
  // The first start fills the caches.
  await timed(() => startAndStop(started));
  for (let round = 0; round < STARTS; round += 1) {
    times.node.push(await timed(() => promisify(execFile)(process.execPath, ["-e", "0"])));
    times.bare.push(await timed(() => startAndStop(bare)));
    times.withHandlers.push(await timed(() => startAndStop(started)));
  }
  return { node: median(times.node), bare: median(times.bare), withHandlers: median(times.withHandlers) };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  const ended = await work();
  // A server is measured until it listens; its end costs the same with and without handlers.
  return (typeof ended === "number" ? ended : performance.now()) - startedAt;
}

async function startAndStop(config: string): Promise<number> {
  const server = await ServerProcess.startHttp(ours(config));
  const listeningAt = performance.now();
  await server.stop();
  return listeningAt;
}

async function measureReload(config: string, folder: string): Promise<number> {
  const server = await ServerProcess.startHttp(ours(config));
  const connection = await HttpConnection.open(new URL("/mcp", server.origin));
  const times: number[] = [];
  try {
    for (let round = 0; round < STARTS; round += 1) {
      const word = `Changed ${round}`;
      const changedAt = performance.now();
      await writeFile(path.join(folder, "file-0.ts"), handlerText(0, word));
      while (!(await list(server, connection, { door: "http-plain", id: 1 })).includes(word)) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      times.push(performance.now() - changedAt);
    }
  } finally {
    connection.close();
    await server.stop();
  }
  return median(times);
}

function ours(config: string): readonly string[] {
  return [MAIN, "mcp-server", "start", "--transport", "http", "--port", "0", "--config", config];
}

/** Writes so many handlers, one in a file, and gives the configuration that serves them. */
async function writeHandlers(folder: string, count: number): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (let index = 0; index < count; index += 1) {
    await writeFile(path.join(folder, `file-${index}.ts`), handlerText(index, "Looks for orders"));
  }
  const config = path.join(folder, "../", `${path.basename(folder)}.yaml`);
  const paths = count === 0 ? [] : [folder];
  const root = path.join(folder, "../data", path.basename(folder));
  // Calls are counted as always, against limits that no benchmark reaches.
  const defaults = { callsPerMinute: 1e9, callsPerDay: 1e9, concurrency: 10_000 };
  const settings = { handlers: { paths }, sandbox: { enabled: false, root }, governance: { defaults } };
  await writeFile(config, JSON.stringify(settings));
  return config;
}

function handlerText(index: number, words: string): string {
  return `interface Search {
  /** Words to look for. @minLength 2 */
  text: string;
  /** @minimum 1 @maximum 50 */
  limit?: number;
}

/** ${words}, number ${index}. */
export function tool_${index}({ text, limit = 10 }: Search): { found: string[]; total: number } {
  return { found: [text].slice(0, limit), total: 1 };
}
`;
}
