import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { browserReport, checkBrowserGoals } from "./browser-report.ts";
import { measureBrowsers } from "./browser.ts";
import { checkHandlerGoals, handlerReport, measureHandlers } from "./handlers-list.ts";
import { checkGoals, goalsReport, soakReport, startReport, throughputReport } from "./report.ts";
import { checkSandboxGoals, sandboxReport } from "./sandbox-report.ts";
import { ledgerReport, measureLedger } from "./ledger.ts";
import { measureSandboxes } from "./sandbox.ts";
import { measureMicrovms, microvmsReport } from "./sandbox-microvms.ts";
import { measureRuntimes, runtimesReport } from "./sandbox-runtimes.ts";
import { checkSkillGoals, measureSkills, skillReport } from "./skills.ts";
import { setUp } from "../scripts/setup.mjs";
import { soak, type SoakResult } from "./soak.ts";
import { measureStart } from "./start-time.ts";
import { buildAssembled } from "./build-assembled.ts";
import { DOORS, TARGETS, type Target } from "./targets.ts";
import { measureThroughput } from "./throughput.ts";

const USAGE = `npm run bench -- [options]

  --quick            short rounds, for a first look
  --only NAMES       servers, doors or both: --only owlclaw,sdk-v2-handler,http-2026
  --rounds N         interleaved rounds, of which the median counts (default 5)
  --seconds N        length of a round (default 3)
  --connections N    clients at the same time (default 16)
  --sandbox          sandboxes instead of the echo tool: create, code, shell, files, memory
  --browser          the browser in a sandbox beside @playwright/mcp and plain Playwright
  --dashboard        100 busy sandboxes, with the dashboard open and without
  --runtimes         with --sandbox: bubblewrap, docker and podman side by side
  --microvms         with --sandbox: bubblewrap and microsandbox side by side; in minutes where the processor must be emulated
  --ledger ROWS      the ledger alone: cost of a row, then list, stats, verify and export over so many rows
  --store URL        with --ledger: also postgres://…
  --shared           a governed call on SQLite, on PostgreSQL, and ungoverned
  --tracing          a call without tracing's hooks, with tracing off, and traced
  --skills           2,000 skills instead of the echo tool alone: read, list, search, reload
  --handlers         100 tools listed, the start with 200 handlers, the reload of one
  --soak CALLS       memory over so many calls, instead of speed
  --soak-mixed MIN   handlers, code, commands, files and new sandboxes for so many minutes (30 is the one that counts)
  --json FILE        where the results go (default bench/results/latest.json)
  --check            exit 1 when a goal is missed
`;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    connections: { type: "string", default: "16" },
    sandbox: { type: "boolean", default: false },
    browser: { type: "boolean", default: false },
    dashboard: { type: "boolean", default: false },
    runtimes: { type: "boolean", default: false },
    microvms: { type: "boolean", default: false },
    ledger: { type: "string" },
    store: { type: "string", default: "" },
    shared: { type: "boolean", default: false },
    tracing: { type: "boolean", default: false },
    skills: { type: "boolean", default: false },
    handlers: { type: "boolean", default: false },
    soak: { type: "string" },
    "soak-mixed": { type: "string" },
    json: { type: "string", default: path.join(import.meta.dirname, "results/latest.json") },
    check: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** Those that the package has no entry for. */
const ASSEMBLED_NAMES = /^owlclaw-(governed|ungoverned|inline)/;
const connections = Number(values.connections);
if (values.help) console.log(USAGE);
else if (values.sandbox && (values.runtimes || values.microvms)) await runRuntimes();
else if (values.sandbox) await runSandbox();
else if (values.browser) await runBrowser();
else if (values.dashboard) await runDashboard();
else if (values.ledger !== undefined) await runLedger(Number(values.ledger));
else if (values.shared) await runShared();
else if (values.tracing) await runTracing();
else if (values.skills) await runSkills();
else if (values.handlers) await runHandlers();
else if (values["soak-mixed"] !== undefined) await runMixedSoak(Number(values["soak-mixed"]));
else if (values.soak === undefined) await runSpeed();
else await runSoak(Number(values.soak));

async function runSpeed(): Promise<void> {
  const targets = selectTargets(values.only);
  if (targets.some(({ name }) => ASSEMBLED_NAMES.test(name))) await buildAssembled();
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 5));
  const secondsPerRound = Number(values.seconds ?? (values.quick ? 1 : 3));
  const warmupSeconds = secondsPerRound / 2;
  const throughput = await measureThroughput({
    targets,
    rounds,
    secondsPerRound,
    warmupSeconds,
    connections,
    log: note,
  });
  const starts = await measureStart(targets, rounds * 2);
  const goals = checkGoals(throughput, starts);
  console.log([throughputReport(throughput), startReport(starts), goalsReport(goals)].join("\n\n"));
  await save({ rounds, secondsPerRound, connections, throughput, starts, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

async function runShared(): Promise<void> {
  await setUp("databases");
  const { checkSharedGoals, measureShared, sharedReport } = await import("./shared.ts");
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 5));
  const secondsPerRound = Number(values.seconds ?? (values.quick ? 1 : 3));
  const warmupSeconds = secondsPerRound / 2;
  const results = await measureShared({ rounds, secondsPerRound, warmupSeconds, connections, log: note });
  const goals = checkSharedGoals(results);
  console.log([sharedReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, secondsPerRound, connections, shared: results, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

async function runTracing(): Promise<void> {
  const { checkTracingGoals, measureTracing, tracingReport } = await import("./tracing.ts");
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 11));
  const secondsPerRound = Number(values.seconds ?? (values.quick ? 1 : 3));
  const warmupSeconds = secondsPerRound / 2;
  const results = await measureTracing({ rounds, secondsPerRound, warmupSeconds, connections, log: note });
  const goals = checkTracingGoals(results);
  console.log([tracingReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, secondsPerRound, connections, tracing: results, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

async function runSandbox(): Promise<void> {
  const rounds = Number(values.rounds ?? (values.quick ? 40 : 200));
  const results = await measureSandboxes({ rounds, log: note });
  const goals = checkSandboxGoals(results);
  console.log([sandboxReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, sandbox: results, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

async function runBrowser(): Promise<void> {
  const rounds = Number(values.rounds ?? (values.quick ? 5 : 20));
  const results = await measureBrowsers({ rounds, log: note });
  const goals = checkBrowserGoals(results);
  console.log([browserReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, browser: results, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

async function runDashboard(): Promise<void> {
  const { checkDashboardGoals, dashboardReport, measureDashboard } = await import("./dashboard.ts");
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 15));
  const secondsPerRound = Number(values.seconds ?? (values.quick ? 3 : 5));
  const results = await measureDashboard({ rounds, secondsPerRound, log: note });
  const goals = checkDashboardGoals(results);
  console.log([dashboardReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, secondsPerRound, dashboard: results, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

async function runRuntimes(): Promise<void> {
  const rounds = Number(values.rounds ?? (values.quick ? 10 : 100));
  if (values.runtimes) await setUp("engines");
  if (values.microvms) await setUp("machines");
  const runtimes = values.runtimes ? await measureRuntimes({ rounds, log: note }) : undefined;
  if (runtimes !== undefined) console.log(runtimesReport(runtimes));
  const microvms = values.microvms ? await measureMicrovms({ rounds, log: note }) : undefined;
  if (microvms !== undefined) console.log(microvmsReport(microvms));
  await save({ rounds, runtimes, microvms });
}

async function runSkills(): Promise<void> {
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 7));
  const results = await measureSkills({ rounds, log: note });
  const goals = checkSkillGoals(results);
  console.log([skillReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, skills: results, goals });
  if (values.check && goals.some(({ isMet }) => !isMet)) process.exitCode = 1;
}

async function runLedger(rows: number): Promise<void> {
  const ledger = await measureLedger({
    rows,
    appends: values.quick ? 4000 : 20_000,
    storeUrl: values.store,
    log: note,
  });
  console.log(ledgerReport(ledger));
  await save({ ledger });
}

async function runHandlers(): Promise<void> {
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 7));
  const results = await measureHandlers({ rounds, log: note });
  const goals = checkHandlerGoals(results);
  console.log([handlerReport(results), goalsReport(goals)].join("\n\n"));
  await save({ rounds, handlers: results, goals });
  if (values.check && goals.some(({ isMet }) => isMet !== true)) process.exitCode = 1;
}

async function runSoak(calls: number): Promise<void> {
  const results: SoakResult[] = [];
  for (const target of selectTargets(values.only === "" ? "owlclaw,owlclaw-stdio" : values.only)) {
    for (const door of target.doors) {
      note(`${target.name} over ${door}`);
      results.push(await soak({ target, door, calls, connections }));
    }
  }
  console.log(soakReport(results));
  await save({ calls, connections, soak: results });
}

async function runMixedSoak(minutes: number): Promise<void> {
  const { soakMixed } = await import("./soak-mixed.ts");
  const { checkMixedSoak, mixedSoakReport } = await import("./soak-mixed-report.ts");
  const windows = await soakMixed({ minutes, log: note });
  const goals = checkMixedSoak(windows);
  console.log([mixedSoakReport(windows), goalsReport(goals)].join("\n\n"));
  await save({ minutes, soakMixed: windows, goals });
  if (values.check && goals.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

/** Names of servers choose servers, names of doors choose doors; what is not named stays whole. */
function selectTargets(only: string): readonly Target[] {
  const names = only === "" ? [] : only.split(",");
  const doors = DOORS.filter((door) => names.includes(door));
  const servers = TARGETS.filter(({ name }) => names.includes(name));
  const unknown = names.filter(
    (name) => !doors.some((door) => door === name) && !servers.some((server) => server.name === name),
  );
  if (unknown.length > 0) {
    throw new Error(
      `no such server or door: ${unknown.join(", ")}; there are ${[...DOORS, ...TARGETS.map(({ name }) => name)].join(", ")}`,
    );
  }
  return (servers.length === 0 ? TARGETS : servers)
    .map((target) => ({
      ...target,
      doors: doors.length === 0 ? target.doors : target.doors.filter((door) => doors.includes(door)),
    }))
    .filter((target) => target.doors.length > 0);
}

async function save(results: Readonly<Record<string, unknown>>): Promise<void> {
  await mkdir(path.dirname(values.json), { recursive: true });
  const machine = { node: process.version, platform: process.platform, arch: process.arch };
  await writeFile(
    values.json,
    `${JSON.stringify({ at: new Date().toISOString(), ...machine, ...results }, null, 2)}\n`,
  );
  note(`results in ${path.relative(process.cwd(), values.json)}`);
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
