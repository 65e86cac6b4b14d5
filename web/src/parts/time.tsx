import type { JSX } from "preact";
import { clockMs } from "./clock.ts";
import { dateTimeOf, durationOf, timeOf } from "./format.ts";

/** How long ago; the exact time is its title. */
export function Age({ since }: { readonly since: string }): JSX.Element {
  const ms = Math.max(0, clockMs.value - Date.parse(since));
  return (
    <time dateTime={since} title={dateTimeOf(since)} class="num">
      {durationOf(ms < 1_000 ? 1_000 : ms)}
    </time>
  );
}

/** How long until. */
export function Until({ time }: { readonly time: string }): JSX.Element {
  const ms = Date.parse(time) - clockMs.value;
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
