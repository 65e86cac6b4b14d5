import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { HttpConnection } from "./http-connection.ts";
import { atMost, type Goal, toTable } from "./report.ts";
import { callHeaders, encode, META_2026 } from "./requests.ts";
import { ServerProcess } from "./server-process.ts";
import { median } from "./statistics.ts";
import { MAIN } from "./targets.ts";

const CONFIG = path.join(import.meta.dirname, "mcp-server.yaml");
const SKILLS = 2000;
/** How many of them are read; nobody reads all of a company's skills at once. */
const READ = 100;
const SKILL_BYTES = 10 * 1024;

type Door = "http-2026" | "http-plain";

interface Asked {
  /** In one slice of a round. */
  readonly calls: number;
  request(index: number): { readonly method: string; readonly params: Record<string, unknown> };
}

/** What is asked, in the order of the table. The first is what the others are held against. */
const CASES = {
  "tools/call echo": {
    calls: 300,
    request: () => ({ method: "tools/call", params: { name: "echo", arguments: { text: "hello" } } }),
  },
  "resources/read 10 KB": {
    calls: 300,
    request: (index) => ({ method: "resources/read", params: { uri: `skill://${nameOf(index % READ)}` } }),
  },
  "resources/list, 50 of 2,000": { calls: 200, request: () => ({ method: "resources/list", params: {} }) },
  "skill_search in 2,000": {
    calls: 30,
    request: (index) => ({
      method: "tools/call",
      params: { name: "skill_search", arguments: { query: `topic${index % 50}` } },
    }),
  },
} as const satisfies Readonly<Record<string, Asked>>;

type CaseName = keyof typeof CASES;

export interface SkillCase {
  readonly door: Door;
  readonly name: CaseName;
  readonly callsPerSecond: number;
  readonly cpuMicrosPerCall: number;
}

export interface SkillResults {
  readonly cases: readonly SkillCase[];
  /** From the start of the process to the open port, with and without the skills. */
  readonly startMs: { readonly bare: number; readonly withSkills: number };
  /** From a changed file to the answer that shows it. */
  readonly reloadMs: number;
}

export async function measureSkills(options: { rounds: number; log: (line: string) => void }): Promise<SkillResults> {
  const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-skills-"));
  try {
    await writeSkills(folder);
    const bare = await startTime([]);
    const withSkills = await startTime(["--skills", folder]);
    const server = await start(["--skills", folder]);
    try {
      const cases = await measureCases(server, options);
      return { cases, startMs: { bare, withSkills }, reloadMs: await reload(server, folder) };
    } finally {
      await server.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function skillReport({ cases, startMs, reloadMs }: SkillResults): string {
  const rows = cases.map((each) => {
    const echo = echoOf(cases, each.door);
    return [
      each.door,
      each.name,
      each.callsPerSecond.toFixed(0),
      (echo.callsPerSecond / each.callsPerSecond).toFixed(2),
      each.cpuMicrosPerCall.toFixed(0),
      (each.cpuMicrosPerCall / echo.cpuMicrosPerCall).toFixed(2),
    ];
  });
  const times = `start ${startMs.bare.toFixed(0)} ms, with ${SKILLS} skills ${startMs.withSkills.toFixed(0)} ms; changed file served after ${reloadMs.toFixed(0)} ms`;
  const head = ["door", "case", "calls/s", "time in echoes", "CPU µs/call", "CPU in echoes"];
  return [toTable(head, rows), times].join("\n\n");
}

/** In CPU and in time; the latter says more about the machine when it does other things too. */
export function checkSkillGoals({ cases }: SkillResults): readonly Goal[] {
  return cases
    .filter(({ name }) => name === "resources/read 10 KB")
    .flatMap(({ door, cpuMicrosPerCall, callsPerSecond }) => {
      const echo = echoOf(cases, door);
      return [
        atMost(`${door}: CPU of reading a 10 KB skill, in echo calls`, cpuMicrosPerCall / echo.cpuMicrosPerCall, 1.3),
        atMost(`${door}: time of reading a 10 KB skill, in echo calls`, echo.callsPerSecond / callsPerSecond, 1.3),
      ];
    });
}

function echoOf(cases: readonly SkillCase[], door: Door): SkillCase {
  const echo = cases.find((each) => each.door === door && each.name === "tools/call echo");
  if (echo === undefined) throw new Error(`nothing was measured over ${door}`);
  return echo;
}

/** Cases take turns in short slices, so that whatever else the machine does falls on all of them alike. */
async function measureCases(
  server: ServerProcess,
  { rounds, log }: { rounds: number; log: (line: string) => void },
): Promise<readonly SkillCase[]> {
  const measured = new Map<string, { door: Door; name: CaseName; calls: number[]; cpu: number[] }>();
  for (let round = 0; round <= rounds; round += 1) {
    for (const door of ["http-2026", "http-plain"] as const) {
      log(`round ${round} of ${rounds} over ${door}`);
      for (const [name, { calls, seconds, cpuSeconds }] of await runRound(server, door)) {
        const key = `${door} ${name}`;
        const all = measured.get(key) ?? { door, name, calls: [], cpu: [] };
        measured.set(key, all);
        // The first round warms up.
        if (round === 0) continue;
        all.calls.push(calls / seconds);
        all.cpu.push((cpuSeconds / calls) * 1e6);
      }
    }
  }
  return [...measured.values()].map(({ door, name, calls, cpu }) => ({
    door,
    name,
    callsPerSecond: median(calls),
    cpuMicrosPerCall: median(cpu),
  }));
}

interface Spent {
  readonly calls: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function runRound(server: ServerProcess, door: Door): Promise<ReadonlyMap<CaseName, Spent>> {
  const spent = new Map<CaseName, Spent>();
  for (let slice = 0; slice < SLICES; slice += 1) {
    for (const name of Object.keys(CASES).filter(isCase)) {
      const before = spent.get(name) ?? { calls: 0, seconds: 0, cpuSeconds: 0 };
      const now = await runSlice(server, door, name);
      spent.set(name, {
        calls: before.calls + now.calls,
        seconds: before.seconds + now.seconds,
        cpuSeconds: before.cpuSeconds + now.cpuSeconds,
      });
    }
  }
  return spent;
}

function isCase(name: string): name is CaseName {
  return name in CASES;
}

const SLICES = 5;
const CONNECTIONS = 8;

async function runSlice(server: ServerProcess, door: Door, name: CaseName): Promise<Spent> {
  const { calls, request } = CASES[name];
  const url = new URL("/mcp", server.origin);
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => HttpConnection.open(url)));
  const cpuBefore = await server.cpuSeconds();
  const startedAt = performance.now();
  let next = 0;
  const keepAsking = async (connection: HttpConnection): Promise<void> => {
    while (next < calls) {
      next += 1;
      const { status, body } = await connection.exchange(toRequest(url, door, request(next % SKILLS)));
      if (status !== 200 || body.includes('"error"')) throw new Error(`${name}: ${status} ${body.slice(0, 500)}`);
    }
  };
  try {
    await Promise.all(connections.map(keepAsking));
  } finally {
    for (const connection of connections) connection.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  return { calls, seconds, cpuSeconds: (await server.cpuSeconds()) - cpuBefore };
}

function toRequest(
  url: URL,
  door: Door,
  { method, params }: { method: string; params: Record<string, unknown> },
): string {
  const isModern = door === "http-2026";
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method,
    params: isModern ? { ...params, _meta: META_2026 } : params,
  });
  const name = params["name"] ?? params["uri"];
  const { "Mcp-Name": _name, ...headers } = callHeaders(door);
  const more = isModern ? { "Mcp-Method": method, ...(typeof name === "string" && { "Mcp-Name": name }) } : {};
  return encode({ method: "POST", url, headers: { ...headers, ...more }, body });
}

/** Writes a file and asks until the answer has it. */
async function reload(server: ServerProcess, folder: string): Promise<number> {
  const url = new URL("/mcp", server.origin);
  const connection = await HttpConnection.open(url);
  const times: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    const text = `changed ${round}`;
    await writeFile(path.join(folder, nameOf(7), "SKILL.md"), skillText(7, text));
    const writtenAt = performance.now();
    for (;;) {
      const { body } = await connection.exchange(
        toRequest(url, "http-plain", CASES["resources/read 10 KB"].request(7)),
      );
      if (body.includes(text)) break;
    }
    times.push(performance.now() - writtenAt);
  }
  connection.close();
  return median(times);
}

async function startTime(args: readonly string[]): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const startedAt = performance.now();
    const server = await start(args);
    times.push(performance.now() - startedAt);
    await server.stop();
  }
  return median(times);
}

function start(args: readonly string[]): Promise<ServerProcess> {
  return ServerProcess.startHttp([
    MAIN,
    "mcp-server",
    "start",
    "--transport",
    "http",
    "--port",
    "0",
    "--config",
    CONFIG,
    ...args,
  ]);
}

async function writeSkills(folder: string): Promise<void> {
  for (let index = 0; index < SKILLS; index += 1) {
    await mkdir(path.join(folder, nameOf(index)), { recursive: true });
    await writeFile(path.join(folder, nameOf(index), "SKILL.md"), skillText(index, `About topic${index % 50}`));
  }
}

function nameOf(index: number): string {
  return `category-${index % 20}/skill-${index}`;
}

function skillText(index: number, description: string): string {
  const head = `---\nname: skill-${index}\ndescription: ${description}\nmetadata:\n  tags: tag${index % 10}\n---\n\n# Skill ${index}\n\n`;
  return head + "Do it step by step, and say what you did.\n".repeat(300).slice(0, SKILL_BYTES - head.length);
}
