import type { JSX } from "preact";

interface MeterProps {
  readonly label: string;
  readonly used: number;
  readonly most: number;
  /** The expected value at the end of the period. */
  readonly forecast?: number;
}

const WIDTH = 200;

export function Meter({ label, used, most, forecast }: MeterProps): JSX.Element {
  const scale = Math.max(most, used, forecast ?? 0, 1);
  const at = (value: number): number => Math.max(0, Math.min(WIDTH, (value / scale) * WIDTH));
  const tone = used >= most ? "bad" : used >= most * 0.8 ? "warn" : "good";
  return (
    <svg class={`meter ${tone}`} viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="track" width={WIDTH} height="10" />
      {forecast === undefined ? null : <rect class="forecast" width={at(forecast)} height="10" />}
      <rect class="used" width={at(used)} height="10" />
      {most < scale ? <rect class="limit" x={at(most) - 1} width="2" height="10" /> : null}
    </svg>
  );
}
