import { computed, effect, signal } from "@preact/signals";
import type { Now, NowChange } from "../../../src/operator/contract.ts";
import { fromAnswer } from "../server/answer-text.ts";
import { openStream, type StreamState } from "../server/event-stream.ts";
import { keepWhileWanted } from "./one-hidden-tab.ts";

export const now = signal<Now | undefined>(undefined);
export const streamState = signal<StreamState>("connecting");

const NO_IDS: readonly string[] = [];
export const approvalIds = computed(() => now.value?.approvals ?? NO_IDS);
export const approvalCount = computed(() => approvalIds.value.length);
export const pauses = computed(() => now.value?.paused ?? []);
export const everybodyPause = computed(() => pauses.value.find(({ client }) => client === "*"));

/** Sends the ids of waiting calls to tabs without a stream, whose titles show the number of them. */
const neighbours = new BroadcastChannel("owlclaw-approvals");

export function followNow(): () => void {
  let isOpen = false;
  neighbours.onmessage = ({ data }) => {
    if (!isOpen && isIds(data)) change({ approvals: data });
  };
  const stopTelling = effect(() => {
    const ids = approvalIds.value;
    // A BroadcastChannel takes no target origin: it reaches only its own origin.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    if (isOpen) neighbours.postMessage(ids);
  });
  const stop = keepWhileWanted(() => {
    isOpen = true;
    const close = openStream({
      path: "live",
      on: {
        now: (data) => {
          now.value = fromAnswer<Now>(data);
        },
        change: (data) => change(fromAnswer<NowChange>(data)),
      },
      onState: (state) => {
        streamState.value = state;
      },
    });
    return () => {
      isOpen = false;
      close();
    };
  });
  return () => {
    stopTelling();
    stop();
  };
}

function isIds(data: unknown): data is readonly string[] {
  return Array.isArray(data) && data.every((each) => typeof each === "string");
}

function change(news: NowChange): void {
  const last = now.peek();
  if (last === undefined) return;
  now.value = {
    ...last,
    sandboxes: merged(last.sandboxes, news.sandboxes, news.sandboxesGone),
    calls: merged(last.calls, news.calls, news.callsGone),
    queue: news.queue ?? last.queue,
    health: news.health ?? last.health,
    approvals: news.approvals ?? last.approvals,
    paused: news.paused ?? last.paused,
  };
}

/** Known entries keep their position, so that rows do not move under the pointer. */
function merged<T extends { readonly id: string }>(
  old: readonly T[],
  fresh: readonly T[] | undefined,
  gone: readonly string[] | undefined,
): readonly T[] {
  if (fresh === undefined && gone === undefined) return old;
  const byId = new Map(old.map((entry) => [entry.id, entry]));
  for (const id of gone ?? []) byId.delete(id);
  for (const entry of fresh ?? []) byId.set(entry.id, entry);
  return [...byId.values()];
}
