import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Registry, type Tool } from "../../src/capability/registry.ts";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { isOwlError } from "../../src/errors/owl-error.ts";
import { Approvals } from "../../src/governance/approval/approvals.ts";
import { Governor } from "../../src/governance/governor.ts";
import { PauseFiles } from "../../src/governance/pause-files.ts";
import { Pauses } from "../../src/governance/pauses.ts";
import { type PolicyOrigin, PolicySource } from "../../src/governance/policy/policy-source.ts";
import type { Ledger } from "../../src/governance/ledger/ledger.ts";
import { Admissions } from "../../src/governance/store/admissions.ts";
import { openStoreAndLedger } from "../../src/governance/store/open-governance-store.ts";
import { loadLedgerKeys } from "../../src/governance/ledger/keys.ts";
import { openLedger } from "../../src/governance/ledger/open-ledger.ts";
import { Pipeline } from "../../src/call/pipeline.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { HandClock, sqliteLab, type TestStore } from "../unit/governance/store/store-lab.ts";
import { makeCall, makeTool } from "../unit/call/fixture.ts";
import { ModelCommand } from "../unit/governance/model-command.ts";

const COST = 10;
const lab = sqliteLab();

interface Terms {
  readonly minute: number;
  readonly day: number;
  readonly atOnce: number;
  readonly budget: number;
  readonly denied: readonly string[];
}

const FIRST_TERMS: Terms = { minute: 6, day: 12, atOnce: 3, budget: 20, denied: [] };

function originOf({ minute, day, atOnce, budget, denied }: Terms): PolicyOrigin {
  const { governance } = DEFAULT_CONFIG;
  const caps = { callsPerMinute: minute, callsPerDay: day, concurrency: atOnce, monthlyBudget: budget };
  return {
    ...governance,
    defaults: { ...governance.defaults, ...caps, deny: denied },
    tools: { paid: { cost: COST } },
  };
}

interface Gate {
  open(isGood: boolean): void;
}

/** A server without transports: policy, limits, ledger and the pipeline over them. */
class TestServer {
  readonly source: PolicySource;
  readonly store: TestStore;
  readonly ledger: Ledger;
  readonly pipeline: Pipeline;
  readonly gates: Gate[] = [];
  readonly #tools: ReadonlyMap<string, Tool>;

  private constructor(source: PolicySource, store: TestStore, ledger: Ledger, pauses: Pauses) {
    this.source = source;
    this.store = store;
    this.ledger = ledger;
    const approvals = new Approvals({ timeoutMs: 1000 });
    const alerts = { send: () => undefined };
    const governor = new Governor({
      source,
      calls: new Admissions({ store, ledger }),
      approvals,
      pauses,
      alerts,
      logger: SILENT_LOGGER,
      failOpen: false,
    });
    const registry = new Registry();
    const run = (): Promise<string> =>
      new Promise((resolve, reject) => {
        this.gates.push({ open: (isGood) => (isGood ? resolve("ran") : reject(new Error("it failed"))) });
      });
    this.#tools = new Map(["free", "paid"].map((name) => [name, makeTool({ name, run })]));
    for (const tool of this.#tools.values()) registry.addTool(tool);
    const times = { timeoutMs: 600_000, progressAfterMs: 600_000, maxResultChars: 1000 };
    this.pipeline = new Pipeline({ registry, ...times, governance: { governor, ledger } });
  }

  static async open(folder: string, clock: HandClock, terms: Terms): Promise<TestServer> {
    const source = await PolicySource.open({ origin: originOf(terms), logger: SILENT_LOGGER });
    const store = await lab.open({ place: folder, clock });
    const keys = loadLedgerKeys({ folder: join(folder, "keys"), create: false });
    const opened = { store, keys };
    const ledger = await openLedger({ config: DEFAULT_CONFIG, dataFolder: folder, logger: SILENT_LOGGER, opened });
    return new TestServer(
      source,
      store,
      ledger,
      await Pauses.open(new PauseFiles(join(folder, "paused")), SILENT_LOGGER),
    );
  }

  /** The rule that refused it; otherwise it runs until its gate opens. */
  async start(
    client: string,
    name: string,
  ): Promise<{ readonly answer: Promise<unknown>; readonly gate: Gate } | string> {
    const tool = this.#tools.get(name);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    const before = this.gates.length;
    const call = makeCall();
    const caller = { ...call.caller, principal: { id: client, scopes: [], claims: {} } };
    const answer = this.pipeline.callTool(tool, {}, { ...call, caller }).catch((error: unknown) => error);
    const refusal = await Promise.race([answer, this.#grown(before)]);
    const gate = this.gates[before];
    if (gate !== undefined) return { answer, gate };
    if (isOwlError(refusal) && refusal.kind === "governance_denied") return String(refusal.facts["rule"]);
    throw new Error("neither let through nor refused", { cause: refusal });
  }

  async #grown(before: number): Promise<void> {
    while (this.gates.length === before) await new Promise((resolve) => setImmediate(resolve));
  }
}

interface Running {
  readonly client: string;
  readonly month: string;
  readonly micros: number;
  readonly gate: Gate;
  readonly answer: Promise<unknown>;
}

/** The plainest thing that could be right, and how many rows there must be. */
class Model {
  terms = FIRST_TERMS;
  readonly calls: { readonly client: string; readonly steady: number; readonly day: string }[] = [];
  readonly spent: { readonly client: string; readonly month: string; readonly cost: number }[] = [];
  running: Running[] = [];
  answered = 0;
  unknown = 0;
  refused = 0;
  /** Refusals that only count: a server that is killed takes those of its last minute with it. */
  lost = 0;
  #counted = 0;
  readonly #streaks = new Set<string>();

  refuse(client: string, rule: string): void {
    this.refused += 1;
    const streak = `${client} ${rule}`;
    if (this.#streaks.has(streak)) this.#counted += 1;
    this.#streaks.add(streak);
  }

  /** What ran costs what was reserved for it. */
  crash(): void {
    for (const { client, month, micros } of this.running) this.spent.push({ client, month, cost: micros });
    this.unknown += this.running.length;
    this.running = [];
    this.lost += this.#counted;
    this.#counted = 0;
    this.#streaks.clear();
  }

  allows(client: string, tool: string, clock: HandClock): boolean {
    const { minute, day, atOnce, budget, denied } = this.terms;
    const mine = this.calls.filter((call) => call.client === client);
    const held = this.running.filter((each) => each.client === client);
    const cost = tool === "paid" ? COST : 0;
    const used = [...this.spent, ...held.map((each) => ({ ...each, cost: each.micros }))]
      .filter((each) => each.client === client && each.month >= monthOf(clock))
      .reduce((sum, each) => sum + each.cost, 0);
    return (
      !denied.includes(tool) &&
      mine.filter(({ steady }) => steady > clock.steady - 60_000).length < minute &&
      mine.filter((call) => call.day >= dayOf(clock)).length < day &&
      held.length < atOnce &&
      (cost === 0 || used + cost <= budget)
    );
  }
}

interface Real {
  readonly folder: string;
  readonly clock: HandClock;
  readonly dead: TestServer[];
  server: TestServer;
}

class Command extends ModelCommand<Model, Real> {}

const start = fc.tuple(fc.constantFrom("ada", "bob"), fc.constantFrom("free", "paid", "paid")).map(
  ([client, tool]) =>
    new Command(`start(${client}, ${tool})`, async (model, { server, clock }) => {
      const isAllowed = model.allows(client, tool, clock);
      const started = await server.start(client, tool);
      const isRefused = typeof started === "string";
      if (isRefused === isAllowed) throw new Error(`the model ${isAllowed ? "allows" : "forbids"} it`);
      if (isRefused) return model.refuse(client, started);
      model.calls.push({ client, steady: clock.steady, day: dayOf(clock) });
      model.running.push({ client, month: monthOf(clock), micros: tool === "paid" ? COST : 0, ...started });
    }),
);

const finish = fc.tuple(fc.nat(20), fc.boolean()).map(
  ([index, isGood]) =>
    new Command(`finish(${index}, ${isGood})`, async (model) => {
      const [ended] = model.running.splice(index % Math.max(1, model.running.length), 1);
      if (ended === undefined) return;
      ended.gate.open(isGood);
      await ended.answer;
      model.answered += 1;
      model.spent.push({ client: ended.client, month: ended.month, cost: ended.micros });
    }),
);

const pass = fc
  .constantFrom(1, 20_000, 59_999, 60_000, 3_600_000)
  .map((ms) => new Command(`pass(${ms})`, async (_model, { clock }) => clock.pass(ms)));

const setClock = fc.constantFrom(-86_400_000, -61_000, 61_000, 86_400_000, 31 * 86_400_000).map(
  (ms) =>
    new Command(`setClock(${ms})`, async (_model, { clock }) => {
      clock.wall += ms;
    }),
);

const reload = fc
  .record({
    minute: fc.integer({ min: 1, max: 8 }),
    day: fc.integer({ min: 1, max: 15 }),
    atOnce: fc.integer({ min: 1, max: 4 }),
    budget: fc.constantFrom(10, 20, 30),
    denied: fc.constantFrom([], ["free"], ["paid"]),
  })
  .map(
    (terms) =>
      new Command(`reload(${JSON.stringify(terms)})`, async (model, { server }) => {
        await server.source.reload(async () => originOf(terms));
        model.terms = terms;
      }),
  );

const badReload = fc.constant(
  new Command("reload(rubbish)", async (_model, { server }) => {
    const origin = { ...originOf(FIRST_TERMS), rules: [{ id: "bad", when: "args.(", effect: "deny" }] };
    await server.source.reload(async () => origin as unknown as PolicyOrigin);
  }),
);

/** What ran is never answered; what was answered stays. */
const crash = fc.constant(
  new Command("crash", async (model, real) => {
    await lab.kill(real.server.store);
    real.dead.push(real.server);
    model.crash();
    real.server = await TestServer.open(real.folder, real.clock, model.terms);
  }),
);

async function live(commands: Iterable<fc.AsyncCommand<Model, Real>>): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-model-"));
  const clock = new HandClock("2026-11-15T23:58:00Z");
  const model = new Model();
  const real: Real = { folder, clock, dead: [], server: await TestServer.open(folder, clock, model.terms) };
  try {
    await fc.asyncModelRun(() => ({ model, real }), commands);
    for (const { gate, answer } of model.running) {
      gate.open(true);
      await answer;
      model.answered += 1;
    }
    await real.server.ledger.close();
    const { ledger } = await openStoreAndLedger({ config: DEFAULT_CONFIG, dataFolder: folder, logger: SILENT_LOGGER });
    const rows = await ledger.reader.list({}, { limit: 10_000 });
    const verified = await ledger.reader.verify({});
    await ledger.close();
    const refused = rows.filter(({ decision }) => decision === "deny").reduce((sum, { count }) => sum + count, 0);
    const allowed = rows.filter(({ decision, kind }) => decision === "allow" && kind === "tool");
    const unknown = allowed.filter(({ outcome }) => outcome === "unknown").length;
    const answered = allowed.length - unknown;
    if (unknown !== model.unknown) throw new Error(`${model.unknown} were killed, and ${unknown} are on record`);
    if (refused > model.refused || refused < model.refused - model.lost)
      throw new Error(`${model.refused} were refused, ${model.lost} of them may be lost, and ${refused} are on record`);
    if (answered !== model.answered) throw new Error(`${model.answered} were answered, and ${answered} are on record`);
    if (!verified.isIntact) throw new Error("the ledger does not verify");
    return model.answered + model.refused;
  } finally {
    // They were left as they stood. What they still write is in nobody's way now.
    for (const { ledger } of real.dead) await ledger.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function dayOf({ wall }: HandClock): string {
  return new Date(wall).toISOString().slice(0, 10);
}

function monthOf(clock: HandClock): string {
  return dayOf(clock).slice(0, 7);
}

test("[004-R8.4] whatever clients, clocks, operators and crashes do, a server lets through what a plain model allows, and its ledger has every answer", async () => {
  let most = 0;
  const commands = fc.commands([start, start, start, start, finish, finish, pass, setClock, reload, badReload, crash], {
    maxCommands: 60,
    size: "max",
  });
  await fc.assert(
    fc.asyncProperty(commands, async (life) => void (most = Math.max(most, await live(life)))),
    { numRuns: 40 },
  );
  expect(most).toBeGreaterThan(8);
}, 240_000);
