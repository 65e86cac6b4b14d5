import { urlOf } from "../test/vm/kept-place.ts";
import { whyNoMachine } from "../test/vm/machine.ts";
import { startMicrosandboxPlace } from "../test/vm/microsandbox-place.ts";
import { CASES, interleave } from "./sandbox-case.ts";
import { callsOf, createAndRun, openSession, type RuntimeCases, runtimesTable } from "./sandbox-runtimes.ts";
import { ToolClient } from "./tool-client.ts";

const RUNTIMES = { bwrap: "bubblewrap", microsandbox: "microsandbox" } as const;
/** A microVM takes ten seconds to start where the processor is emulated. */
const CREATES = 3;
const MAX_ROUNDS = 20;
const WARMUP_ROUNDS = 3;

export interface MicrovmResults {
  /** Where both servers ran: figures of an emulated processor are for their ratios alone. */
  readonly place: string;
  readonly runtimes: readonly RuntimeCases[];
}

/** Two servers on one machine, with bubblewrap and with microVMs, without pools; called in turn. */
export async function measureMicrovms(options: {
  readonly rounds: number;
  readonly log: (line: string) => void;
}): Promise<MicrovmResults> {
  const { rounds, log } = options;
  const reason = await whyNoMachine();
  if (reason !== undefined)
    return { place: "nowhere", runtimes: [{ name: "microsandbox", cases: [], absent: reason }] };
  const place = await startMicrosandboxPlace({ canary: "", say: log, way: process.env["OWLCLAW_TEST_MICROVMS"] });
  const clients: ToolClient[] = [];
  try {
    log("microVMs: a server with bubblewrap beside them");
    await place.ask("bubblewrap");
    const calls: Record<string, () => Promise<number>> = {};
    const creates: Record<string, () => Promise<number>> = {};
    for (const [name, runtime] of Object.entries(RUNTIMES)) {
      log(`microVMs: a first sandbox of ${runtime}`);
      const client = await ToolClient.open(urlOf(place, runtime), { isFreshForEach: true });
      clients.push(client);
      const work = callsOf({ client, session: await openSession(client) });
      for (const [each, call] of Object.entries(work)) calls[`${name} ${each}`] = call;
      creates[`${name} ${CASES.cold}`] = async () => await createAndRun(client);
    }
    log("microVMs: creates");
    const created = await interleave(creates, { rounds: CREATES, warmupRounds: 0 });
    log("microVMs: calls");
    const called = await interleave(calls, { rounds: Math.min(rounds, MAX_ROUNDS), warmupRounds: WARMUP_ROUNDS });
    const runtimes = Object.keys(RUNTIMES).map((name) => ({
      name,
      cases: [...called, ...created]
        .filter((each) => each.name.startsWith(`${name} `))
        .map((each) => ({ ...each, name: each.name.slice(name.length + 1) })),
    }));
    return { place: place.name, runtimes };
  } catch (error) {
    log(place.lastWords());
    throw error;
  } finally {
    for (const client of clients) client.close();
    await place.stop();
  }
}

export function microvmsReport({ place, runtimes }: MicrovmResults): string {
  const [absent] = runtimes.flatMap((each) => each.absent ?? []);
  if (absent !== undefined) return `microVMs are absent: ${absent}`;
  return `microVMs beside bubblewrap, both ${place}, without a pool, ms\n${runtimesTable(runtimes)}`;
}
