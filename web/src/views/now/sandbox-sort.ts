import type { SandboxNow } from "../../../../src/operator/contract.ts";
import { SANDBOX_COLUMNS, type SandboxColumn } from "./sandbox-columns.tsx";

export interface Sort {
  readonly column: SandboxColumn;
  readonly isDown: boolean;
}

/** Parses the sort order in the address: the name of a column, with a minus for descending. */
export function sortOf(text: string): Sort | undefined {
  const isDown = text.startsWith("-");
  const column = SANDBOX_COLUMNS.find(({ name }) => name === text.slice(isDown ? 1 : 0));
  return column && { column, isDown };
}

/** The sort order after a click on a column: its default direction, then the other one, then unsorted. */
export function nextSort(current: Sort | undefined, { name, isNumber = false }: SandboxColumn): string | undefined {
  const [first, second] = isNumber ? [`-${name}`, name] : [name, `-${name}`];
  if (current?.column.name !== name) return first;
  return current.isDown === isNumber ? second : undefined;
}

/** Sorts stably: equal entries keep their order. */
export function sorted(sandboxes: readonly SandboxNow[], sort: Sort | undefined): readonly SandboxNow[] {
  if (sort === undefined) return sandboxes;
  const { key } = sort.column;
  const way = sort.isDown ? -1 : 1;
  return sandboxes.toSorted((a, b) => way * compare(key(a), key(b)));
}

function compare(a: string | number, b: string | number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
