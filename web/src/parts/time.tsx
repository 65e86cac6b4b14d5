import type { JSX } from "preact";
import { nowNear } from "./clock.ts";
import { dateTimeOf, durationOf, timeOf } from "./format.ts";

/** The age of a time. Its title is the exact time. */
export function Age({ since }: { readonly since: string }): JSX.Element {
  const sinceMs = Date.parse(since);
  const ms = Math.max(0, nowNear(sinceMs) - sinceMs);
  return (
    <time dateTime={since} title={dateTimeOf(since)} class="num">
      {durationOf(ms < 1_000 ? 1_000 : ms)}
    </time>
  );
}

/** The duration until a time. */
export function Until({ time }: { readonly time: string }): JSX.Element {
  const timeMs = Date.parse(time);
  const ms = timeMs - nowNear(timeMs);
  return (
    <time dateTime={time} title={dateTimeOf(time)} class="num">
      {ms <= 0 ? "over" : `in ${durationOf(ms)}`}
    </time>
  );
}

export function Clock({ time, withDate = false }: { readonly time: string; readonly withDate?: boolean }): JSX.Element {
  return (
    <time dateTime={time} title={dateTimeOf(time)} class="num">
      {withDate ? dateTimeOf(time) : timeOf(time)}
    </time>
  );
}
