import { effect } from "@preact/signals";
import type { Pause } from "../../../src/operator/contract.ts";
import { now } from "../live/now-store.ts";
import { announce } from "../parts/announcer.tsx";
import { visibleText } from "../parts/format.ts";

/**
 * Announces clients that other operators paused, and clients that any operator resumed. The first state after loading
 * is not announced.
 */
export function followPauses(operator: string): () => void {
  let last: readonly Pause[] | undefined;
  return effect(() => {
    const paused = now.value?.paused;
    if (paused === undefined || paused === last) return;
    const before = last;
    last = paused;
    if (before === undefined) return;
    const begun = paused.filter((pause) => pause.by !== operator && !before.some((known) => isSame(known, pause)));
    const over = before.filter(({ client }) => !paused.some((pause) => pause.client === client));
    const news = [...begun.map(begunText), ...over.map(overText)];
    if (news.length > 0) announce(news.join(" "));
  });
}

function isSame(one: Pause, other: Pause): boolean {
  return one.client === other.client && one.by === other.by && one.since === other.since;
}

function begunText({ client, by, reason }: Pause): string {
  const whom = client === "*" ? "all clients" : visibleText(client);
  return `${visibleText(by)} has paused ${whom}${reason === "" ? "." : `: ${visibleText(reason)}`}`;
}

function overText({ client }: Pause): string {
  return client === "*" ? "Clients may call again." : `${visibleText(client)} may call again.`;
}
