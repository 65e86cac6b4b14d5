import type { JSX, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Bar {
  readonly key: string;
  /** From bottom to top. */
  readonly parts: readonly { readonly tone: "good" | "warn" | "bad" | "main"; readonly value: number }[];
  /** The tooltip of the bar. */
  readonly title: string;
  readonly label?: string;
  readonly onClick?: () => void;
}

interface BarChartProps {
  readonly label: string;
  readonly bars: readonly Bar[];
  readonly format: (value: number) => string;
  readonly height?: number;
}

const FIRST_WIDTH = 960;
const LEAST_WIDTH = 200;
const LEFT = 52;
/** The width of a label with a time or a day. */
const LABEL_PX = 76;
const TOP = 10;

/** Bars as plain SVG: it uses the colours of the theme and needs no library. A table beside it contains the numbers. */
export function BarChart({ label, bars, format, height = 160 }: BarChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const bottom = height - 22;
  const most = niceTop(Math.max(...bars.map(totalOf), 0));
  const step = (width - LEFT) / Math.max(bars.length, 1);
  const y = (value: number): number => bottom - (value / most) * (bottom - TOP);
  const labelEvery = Math.max(1, Math.ceil(LABEL_PX / step));
  return (
    <div class="chart" ref={place}>
      <svg viewBox={`0 0 ${width} ${height}`} height={height} role="img" aria-label={label}>
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line class="grid" x1={LEFT} x2={width} y1={y(most * part)} y2={y(most * part)} />
            <text x={LEFT - 8} y={y(most * part) + 4} text-anchor="end">
              {format(most * part)}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => (
          <BarColumn
            key={bar.key}
            bar={bar}
            x={LEFT + index * step}
            width={step}
            y={y}
            bottom={bottom}
            isLabelled={index % labelEvery === 0}
          />
        ))}
      </svg>
    </div>
  );
}

/** One unit of the SVG is one pixel, so that its texts have the size of all others. */
function useWidth(place: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(FIRST_WIDTH);
  useLayoutEffect(() => {
    const element = place.current?.firstElementChild;
    if (element === null || element === undefined) return;
    const watcher = new ResizeObserver(() => setWidth(Math.max(LEAST_WIDTH, element.clientWidth)));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return width;
}

interface ColumnProps {
  readonly bar: Bar;
  readonly x: number;
  readonly width: number;
  readonly y: (value: number) => number;
  readonly bottom: number;
  readonly isLabelled: boolean;
}

function BarColumn({ bar, x, width, y, bottom, isLabelled }: ColumnProps): JSX.Element {
  let below = 0;
  const gap = Math.min(4, width * 0.15);
  return (
    <g class={bar.onClick === undefined ? "column" : "column clickable"} onClick={bar.onClick}>
      <title>{bar.title}</title>
      <rect class="hit" x={x} y={TOP} width={width} height={bottom - TOP} />
      {bar.parts.map(({ tone, value }) => {
        const top = y(below + value);
        const heightOf = y(below) - top;
        below += value;
        return value === 0 ? null : (
          <rect
            key={tone}
            class={`bar ${tone}`}
            x={x + gap / 2}
            y={top}
            width={Math.max(1, width - gap)}
            height={heightOf}
          />
        );
      })}
      {isLabelled && bar.label !== undefined ? (
        <text x={x + width / 2} y={bottom + 16} text-anchor="middle">
          {bar.label}
        </text>
      ) : null}
    </g>
  );
}

function totalOf(bar: Bar): number {
  return bar.parts.reduce((sum, { value }) => sum + value, 0);
}

/** Rounds up to the next of 1, 2, 5, 10, 20 … */
function niceTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= value) ?? 10;
  return factor * power;
}
