import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LedgerTimeline, TimelineBucket } from "../../../../src/operator/contract.ts";
import { BarChart } from "../../parts/bar-chart.tsx";
import { countOf, dateTimeOf } from "../../parts/format.ts";
import { Problem } from "../../parts/problem.tsx";
import { changeQuery } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import type { Filters } from "./filters.ts";

const BUCKETS = 60;
const DAY_MS = 86_400_000;

/** The number of calls over time. A click on a bar filters the list to its time range. */
export function Timeline({ filters, round }: { readonly filters: Filters; readonly round: number }): JSX.Element {
  const timeline = useResource<LedgerTimeline>("ledger/timeline", { ...filters, buckets: BUCKETS });
  const shownRound = useRef(round);
  useEffect(() => {
    if (shownRound.current !== round) timeline.reload();
    shownRound.current = round;
  }, [round]);
  return (
    <figure class="timeline">
      <figcaption>
        <span class="key main">allowed</span>
        <span class="key bad">refused</span>
        <span class="key warn">failed</span>
      </figcaption>
      <Problem error={timeline.error} onRetry={timeline.reload} />
      {timeline.data === undefined ? <div class="chart-space" /> : <Bars timeline={timeline.data} />}
    </figure>
  );
}

function Bars({ timeline: { buckets, bucketMs } }: { readonly timeline: LedgerTimeline }): JSX.Element {
  const sum = (name: "allowed" | "refused" | "failed"): number =>
    buckets.reduce((total, bucket) => total + bucket[name], 0);
  const words = `Calls by time: ${countOf(sum("allowed"))} allowed, ${countOf(sum("refused"))} refused, ${countOf(sum("failed"))} failed`;
  return (
    <BarChart
      label={words}
      height={120}
      format={(value) => (Number.isInteger(value) ? countOf(value) : "")}
      bars={buckets.map((bucket) => ({
        key: bucket.start,
        parts: [
          { tone: "main", value: bucket.allowed },
          { tone: "warn", value: bucket.failed },
          { tone: "bad", value: bucket.refused },
        ],
        title: `${dateTimeOf(bucket.start)}: ${bucket.allowed} allowed, ${bucket.refused} refused, ${bucket.failed} failed`,
        label: labelOf(bucket, bucketMs),
        onClick: () =>
          changeQuery({ from: bucket.start, to: new Date(Date.parse(bucket.start) + bucketMs).toISOString() }),
      }))}
    />
  );
}

function labelOf({ start }: TimelineBucket, bucketMs: number): string {
  const date = new Date(start);
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  return bucketMs * BUCKETS > 2 * DAY_MS
    ? date.toLocaleDateString(undefined, { month: "short", day: "numeric" })
    : date.toLocaleTimeString(undefined, bucketMs < 10_000 ? { ...time, second: "2-digit" } : time);
}
