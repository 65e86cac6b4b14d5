import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { HttpConnection } from "./http-connection.ts";
import { atLeast, atMost, type Goal, toTable } from "./report.ts";
import { callHeaders, encode, META_2026 } from "./requests.ts";
import { newDataFolder, ServerProcess } from "./server-process.ts";
import { median } from "./statistics.ts";
import { MAIN } from "./targets.ts";

const LISTED = 100;
const STARTED = 200;
/** In one slice of a round. Linux counts CPU time in hundredths of a second: the faster one needs more to be seen. */
const LISTS = { owlclaw: 600, "sdk-v2-handler": 60 } as const;
const SLICES = 4;
const CONNECTIONS = 8;
const STARTS = 5;
/** A second where a start without handlers takes 400 ms: as a ratio, the goal holds on slower and busier machines too. */
const MAX_START_RATIO = 2.5;
/** The ways to write a handler. */
const KINDS = ["functions with types", "defineHandler", "Python"] as const;
type Kind = (typeof KINDS)[number];

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
  /** Until the server listens: without handlers, and with many that are as they were. */
  readonly startMs: { readonly bare: number; readonly unchanged: Readonly<Record<Kind, number>> };
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
    const cases = await measureLists(listed, options);
    options.log("starts");
    const startMs = await measureStarts(folder);
    options.log("reloads");
    const started = await writeHandlers(path.join(folder, "started"), STARTED);
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
  const starts = KINDS.map((kind) => `${startMs.unchanged[kind].toFixed(0)} ms (${kind})`).join(", ");
  return [
    `tools/list of ${LISTED} tools\n${toTable(["server", "lists/s", "CPU µs/list"], rows)}`,
    `start: without handlers ${startMs.bare.toFixed(0)} ms, with ${STARTED} unchanged ones ${starts}`,
    `changed file, one of ${STARTED}: listed after ${reloadMs.toFixed(0)} ms`,
  ].join("\n\n");
}

export function checkHandlerGoals({ cases, startMs: { bare, unchanged } }: HandlerResults): readonly Goal[] {
  const cpu = (door: Door, server: ListCase["server"]): number =>
    cases.find((each) => each.door === door && each.server === server)?.cpuMicrosPerList ?? Number.NaN;
  return [
    ...DOORS.map((door) =>
      atLeast(`${door}: CPU of tools/list in SDK v2, in ours`, cpu(door, "sdk-v2-handler") / cpu(door, "owlclaw"), 10),
    ),
    ...KINDS.map((kind) =>
      atMost(
        `start with ${STARTED} unchanged handlers (${kind}), in starts without`,
        unchanged[kind] / bare,
        MAX_START_RATIO,
      ),
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

async function measureStarts(folder: string): Promise<HandlerResults["startMs"]> {
  const bare = await writeHandlers(path.join(folder, "bare"), 0);
  const configs = new Map<Kind, string>();
  for (const kind of KINDS)
    configs.set(kind, await writeHandlers(path.join(folder, kind.replaceAll(" ", "-")), STARTED, kind));
  // What a first start has written down is there at every later one.
  const dataFolders = new Map([bare, ...configs.values()].map((config) => [config, newDataFolder()]));
  const times = new Map([bare, ...configs.values()].map((config) => [config, new Array<number>()]));
  for (let round = 0; round <= STARTS; round += 1) {
    for (const [config, dataFolder] of dataFolders) {
      const startedAt = performance.now();
      const server = await ServerProcess.startHttp(ours(config), dataFolder);
      // The first start fills the caches.
      if (round > 0) times.get(config)?.push(performance.now() - startedAt);
      await server.stop();
    }
  }
  const medianOf = (config = ""): number => median(times.get(config) ?? []);
  const unchanged = (kind: Kind): number => medianOf(configs.get(kind));
  return {
    bare: medianOf(bare),
    unchanged: {
      "functions with types": unchanged("functions with types"),
      defineHandler: unchanged("defineHandler"),
      Python: unchanged("Python"),
    },
  };
}

async function measureReload(config: string, folder: string): Promise<number> {
  const server = await ServerProcess.startHttp(ours(config));
  const connection = await HttpConnection.open(new URL("/mcp", server.origin));
  const times: number[] = [];
  try {
    for (let round = 0; round < STARTS; round += 1) {
      const word = `Changed ${round}`;
      const changedAt = performance.now();
      await writeFile(path.join(folder, "file_0.ts"), handlerText(0, word));
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
async function writeHandlers(folder: string, count: number, kind: Kind = "functions with types"): Promise<string> {
  await mkdir(folder, { recursive: true });
  const ending = kind === "Python" ? "py" : "ts";
  for (let index = 0; index < count; index += 1) {
    await writeFile(path.join(folder, `file_${index}.${ending}`), TEXTS[kind](index, "Looks for orders"));
  }
  const config = path.join(folder, "../", `${path.basename(folder)}.yaml`);
  const paths = count === 0 ? [] : [folder];
  // Calls are counted as always, against limits that no benchmark reaches.
  const defaults = { callsPerMinute: 1e9, callsPerDay: 1e9, concurrency: 10_000 };
  const settings = { handlers: { paths }, sandbox: { enabled: false }, governance: { defaults } };
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

const TEXTS: Readonly<Record<Kind, (index: number, words: string) => string>> = {
  "functions with types": handlerText,
  defineHandler: (index, words) => `import { defineHandler, z } from "owlclaw";

export const tool = defineHandler({
  name: "tool_${index}",
  description: "${words}, number ${index}.",
  input: z.object({ text: z.string().min(2), limit: z.number().min(1).max(50).default(10) }),
  output: z.object({ found: z.array(z.string()), total: z.number() }),
  run: ({ text, limit }) => ({ found: [text].slice(0, limit), total: 1 }),
});
`,
  Python: (index, words) => `from typing import List


def tool_${index}(text: str, limit: int = 10) -> List[str]:
    """${words}, number ${index}."""
    return [text][:limit]
`,
};
