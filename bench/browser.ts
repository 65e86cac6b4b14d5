import { cpus, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { missingIn } from "./browser-missing.ts";
import { type BrowserPeer, preparePlaywright, startOwlClaw, startPlaywrightMcp } from "./browser-peers.ts";
import { startSite } from "./browser-site.ts";
import { median } from "./statistics.ts";

const PAGE = "/form.html";
/** 1,000 rows of five cells. */
const LARGE_PAGE = "/table?rows=1000";
/** Each of these needs new servers, since a browser starts once. */
const COLD_ROUNDS = 5;
const LOOK_MS = 100;
/** Half a processor: the machine itself is never quite still. */
const REST_SHARE = 0.5;
const MAX_LOOKS = 20;

export interface BrowserCase {
  readonly name: string;
  readonly firstGotoMs: number;
  readonly gotoMs: number;
  readonly largeGotoMs: number;
  readonly snapshotMs: number;
  readonly snapshotChars: number;
  /** Of what the page shows and offers, what is not in the snapshot. */
  readonly missing: number;
}

export interface BrowserResults {
  readonly cases: readonly BrowserCase[];
  readonly loadBefore: number;
}

/** All browsers run at the same time and are asked by turns, so that a busy moment meets all of them. */
export async function measureBrowsers(options: {
  rounds: number;
  log: (line: string) => void;
}): Promise<BrowserResults> {
  const { rounds, log } = options;
  const [loadBefore = Number.NaN] = loadavg();
  const site = await startSite();
  log(`first goto: ${COLD_ROUNDS} rounds`);
  const first = await measureFirst(site.origin);
  const plain = preparePlaywright(site.origin);
  const peers = await startPeers(site.origin, plain);
  try {
    for (const peer of peers) await peer.goto(PAGE);
    log(`goto: ${rounds} rounds`);
    const goto = await byTurns(peers, rounds, (peer) => peer.goto(PAGE));
    log(`goto of the large page: ${rounds} rounds`);
    const largeGoto = await byTurns(peers, rounds, (peer) => peer.goto(LARGE_PAGE));
    log(`snapshot of the large page: ${rounds} rounds`);
    const texts = new Map<BrowserPeer, string>();
    const snapshot = await byTurns(peers, rounds, async (peer) => void texts.set(peer, await peer.snapshot()));
    const truth = await plain.truth();
    const cases = peers.map((peer) => {
      const text = texts.get(peer) ?? "";
      const ms = (times: ReadonlyMap<BrowserPeer, number[]>): number => median(times.get(peer) ?? []);
      const facts = { snapshotChars: text.length, missing: missingIn(text, truth) };
      return {
        name: peer.name,
        firstGotoMs: median(first.get(peer.name) ?? []),
        gotoMs: ms(goto),
        largeGotoMs: ms(largeGoto),
        snapshotMs: ms(snapshot),
        ...facts,
      };
    });
    return { cases, loadBefore };
  } finally {
    for (const peer of peers) await peer.stop();
    site.stop();
  }
}

async function startPeers(origin: string, plain: BrowserPeer): Promise<readonly BrowserPeer[]> {
  return [await startOwlClaw(), await startPlaywrightMcp(origin), plain];
}

/** Servers that run and have not started their browser yet, by turns: whoever is first finds the machine's caches cold. */
async function measureFirst(origin: string): Promise<ReadonlyMap<string, number[]>> {
  const times = new Map<string, number[]>();
  for (let round = 0; round < COLD_ROUNDS; round += 1) {
    const peers = await startPeers(origin, preparePlaywright(origin));
    const order = peers.map((_peer, turn) => peers[(round + turn) % peers.length]);
    for (const peer of order) {
      if (peer === undefined) continue;
      const startedAt = performance.now();
      await peer.goto(PAGE);
      times.set(peer.name, [...(times.get(peer.name) ?? []), performance.now() - startedAt]);
      await peer.stop();
    }
  }
  return times;
}

async function byTurns(
  peers: readonly BrowserPeer[],
  rounds: number,
  act: (peer: BrowserPeer) => Promise<void>,
): Promise<ReadonlyMap<BrowserPeer, number[]>> {
  const times = new Map<BrowserPeer, number[]>(peers.map((peer) => [peer, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < peers.length; turn += 1) {
      const peer = peers[(round + turn) % peers.length];
      if (peer === undefined) continue;
      await othersAtRest();
      const startedAt = performance.now();
      await act(peer);
      times.get(peer)?.push(performance.now() - startedAt);
    }
  }
  return times;
}

/**
 * A page is "loaded" before its browser has drawn it. Who answers at once would leave that work to the time of whoever is
 * asked next, and who waits for it would not.
 */
async function othersAtRest(): Promise<void> {
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    const before = busyMs();
    await delay(LOOK_MS);
    if (busyMs() - before < LOOK_MS * REST_SHARE) return;
  }
}

/** Of all processors together. */
function busyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.sys + times.nice + times.irq, 0);
}
