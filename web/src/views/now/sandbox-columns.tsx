import type { JSX } from "preact";
import type { SandboxNow } from "../../../../src/operator/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { bytesOf, visibleText } from "../../parts/format.ts";
import { Age, Until } from "../../parts/time.tsx";
import { href } from "../../routing/router.ts";

export interface SandboxColumn {
  /** The name in the address. */
  readonly name: string;
  readonly title: string;
  /** Numbers are aligned to the end, and sorted with the largest first. */
  readonly isNumber?: boolean;
  readonly isCode?: boolean;
  /** The sort key of a row. */
  readonly key: (sandbox: SandboxNow) => string | number;
  readonly cell: (sandbox: SandboxNow) => JSX.Element | string;
}

export const SANDBOX_COLUMNS: readonly SandboxColumn[] = [
  { name: "id", title: "Sandbox", isCode: true, key: ({ id }) => id, cell: SandboxLink },
  { name: "state", title: "State", key: ({ state }) => state, cell: StateBadges },
  { name: "owner", title: "Owner", key: ({ owner }) => owner, cell: ({ owner }) => visibleText(owner) },
  {
    name: "running",
    title: "Running",
    isCode: true,
    key: ({ running }) => running ?? "",
    cell: ({ running }) => running ?? <span class="muted">–</span>,
  },
  {
    name: "cpu",
    title: "CPU",
    isNumber: true,
    key: ({ cpuPercent = -1 }) => cpuPercent,
    cell: ({ cpuPercent }) => (cpuPercent === undefined ? "–" : `${Math.round(cpuPercent)} %`),
  },
  {
    name: "memory",
    title: "Memory",
    isNumber: true,
    key: ({ memoryBytes = -1 }) => memoryBytes,
    cell: ({ memoryBytes }) => (memoryBytes === undefined ? "–" : bytesOf(memoryBytes)),
  },
  {
    name: "template",
    title: "Template",
    key: ({ template }) => template,
    cell: ({ template }) => visibleText(template),
  },
  { name: "runtime", title: "Runtime", key: ({ runtime }) => runtime, cell: ({ runtime }) => runtime },
  {
    name: "age",
    title: "Age",
    isNumber: true,
    key: ({ createdAt }) => -Date.parse(createdAt),
    cell: ({ createdAt }) => <Age since={createdAt} />,
  },
  {
    name: "ends",
    title: "Ends",
    isNumber: true,
    key: ({ expiresAt }) => Date.parse(expiresAt),
    cell: ({ expiresAt }) => <Until time={expiresAt} />,
  },
];

function SandboxLink({ id }: SandboxNow): JSX.Element {
  return <a href={href(["sandboxes", id])}>{id}</a>;
}

function StateBadges({ state, takenOverBy }: SandboxNow): JSX.Element {
  return (
    <>
      <Badge text={state} />
      {takenOverBy === undefined ? null : <Badge text={`taken over by ${visibleText(takenOverBy)}`} tone="warn" />}
    </>
  );
}
