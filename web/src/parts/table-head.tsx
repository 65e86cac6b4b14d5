import type { JSX } from "preact";

interface Column {
  readonly title: string;
  /** Aligned to the end, for numbers. */
  readonly isEnd?: boolean;
  /** Only for screen readers. */
  readonly isUnseen?: boolean;
}

export function end(title: string): Column {
  return { title, isEnd: true };
}

export function unseen(title: string): Column {
  return { title, isUnseen: true };
}

export function TableHead({ columns }: { readonly columns: readonly (string | Column)[] }): JSX.Element {
  return (
    <thead>
      <tr>
        {columns
          .map((column) => (typeof column === "string" ? { title: column } : column))
          .map(({ title, isEnd, isUnseen }) => (
            <th key={title} scope="col" class={isEnd === true ? "end" : undefined}>
              {isUnseen === true ? <span class="unseen">{title}</span> : title}
            </th>
          ))}
      </tr>
    </thead>
  );
}
