import type { JSX } from "preact";

interface Tab {
  readonly name: string;
  readonly title: string;
  readonly to: string;
}

/** Links, since each has an address of its own; a list of links is also what readers expect then. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
}): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ name, title, to }) => (
        <a key={name} href={to} aria-current={name === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
