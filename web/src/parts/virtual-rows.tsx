import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualRowsProps {
  readonly label: string;
  readonly count: number;
  readonly header: ComponentChildren;
  readonly row: (index: number) => ComponentChildren;
  /** Receives the range of rendered rows. */
  readonly onWindow?: (first: number, last: number) => void;
  /** The key under which the scroll position is stored, to restore it later. */
  readonly memory: string;
  /** With few rows, the table is only as high as its rows. */
  readonly isFitting?: boolean;
}

const ROW_PX = 30;
/**
 * Browsers limit the height of an element; in Firefox to 17 million pixels. Beyond this limit, one pixel of the scroll
 * bar is more than one pixel of rows.
 */
const MOST_PX = 15_000_000;
const AROUND_ROWS = 12;
const places = new Map<string, number>();

/** A table of any length that renders only the visible rows. */
export function VirtualRows(props: VirtualRowsProps): JSX.Element {
  const { label, count, header, row, onWindow, memory, isFitting = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: places.get(memory) ?? 0, height: 600 });
  const fullPx = count * ROW_PX;
  const heightPx = Math.min(fullPx, MOST_PX);
  const shownRows = view.height / ROW_PX;
  const part = heightPx <= view.height ? 0 : view.top / (heightPx - view.height);
  const topRow = heightPx === fullPx ? view.top / ROW_PX : part * Math.max(0, count - shownRows);
  const first = Math.max(0, Math.floor(topRow) - AROUND_ROWS);
  const last = Math.min(count - 1, Math.ceil(topRow + shownRows) + AROUND_ROWS);
  const offsetPx = view.top + (first - topRow) * ROW_PX;

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    element.scrollTop = places.get(memory) ?? 0;
    const watcher = new ResizeObserver(() => setView({ top: element.scrollTop, height: element.clientHeight }));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [memory]);
  useEffect(() => onWindow?.(first, last), [first, last, count]);

  const onScroll = (): void => {
    const element = box.current;
    if (element === null) return;
    places.set(memory, element.scrollTop);
    setView({ top: element.scrollTop, height: element.clientHeight });
  };
  const rows = Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset);
  return (
    <div class={isFitting ? "rows fitting" : "rows"} role="table" aria-label={label} aria-rowcount={count + 1}>
      <div class="rows-head" role="rowgroup">
        {header}
      </div>
      <div class="rows-box" ref={box} tabIndex={0} role="rowgroup" aria-label={label} onScroll={onScroll}>
        <div class="rows-space" role="presentation" style={{ height: `${heightPx}px` }}>
          <div class="rows-shown" role="presentation" style={{ transform: `translateY(${offsetPx}px)` }}>
            {rows.map(row)}
          </div>
        </div>
      </div>
    </div>
  );
}
