import type { JSX } from "preact";

interface Tab {
  readonly name: string;
  readonly title: string;
  readonly to: string;
}

/** The tabs are links, because each has its own address. Screen readers announce them as a list of links. */
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
