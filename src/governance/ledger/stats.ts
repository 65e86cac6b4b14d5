import { setImmediate } from "node:timers/promises";
import { toText } from "./stored-row.ts";
import {
  type LedgerCount,
  type LedgerStats,
  type SqlPart,
  type StatsGroup,
  type StatsQuery,
  statsQuery,
  type TimelineCount,
} from "./query.ts";

type KeyedCount = LedgerCount & { readonly key: string };

/** Databases hand out sums as numbers, big numbers or texts. */
export function toCount(row: unknown): KeyedCount {
  const value = (name: string): unknown =>
    typeof row === "object" && row !== null ? Reflect.get(row, name) : undefined;
  const amount = (name: string): number => Number(value(name) ?? 0);
  return {
    key: toText(value("key")),
    calls: amount("calls"),
    refused: amount("refused"),
    failed: amount("failed"),
    costMicros: amount("costMicros"),
    durationMs: Math.floor(amount("durationUs") / 1000),
  };
}

export function toTimelineCount(row: unknown): TimelineCount {
  const amount = (name: string): number =>
    Number(typeof row === "object" && row !== null ? (Reflect.get(row, name) ?? 0) : 0);
  return { bucket: amount("bucket"), allowed: amount("allowed"), refused: amount("refused"), failed: amount("failed") };
}

/** Calls and costs of what the filter lets through: in all, by client, by tool, by day. */
export async function collectStats(
  query: StatsQuery,
  run: (query: SqlPart) => Promise<readonly KeyedCount[]>,
): Promise<LedgerStats> {
  const by = async (group: StatsGroup): Promise<readonly KeyedCount[]> => {
    // Each of them reads every row: whoever has a short question gets its turn in between.
    await setImmediate();
    return run(statsQuery(group, query));
  };
  const [total] = await by("total");
  const clients = await by("client");
  const tools = await by("tool");
  const days = await by("day");
  return {
    total: withoutKey(total ?? { key: "", calls: 0, refused: 0, failed: 0, costMicros: 0, durationMs: 0 }),
    clients: clients.map((count) => ({ client: count.key, ...withoutKey(count) })),
    tools: tools.map((count) => ({ tool: count.key, ...withoutKey(count) })),
    days: days.map((count) => ({ day: count.key, ...withoutKey(count) })),
  };
}

function withoutKey({ calls, refused, failed, costMicros, durationMs }: KeyedCount): LedgerCount {
  return { calls, refused, failed, costMicros, durationMs };
}
