import type { JSX } from "preact";
import type { ToolFacts } from "../../../../src/operator/contract-policy.ts";
import { Badge } from "../../parts/badge.tsx";

export function Marks({ tool }: { readonly tool: ToolFacts }): JSX.Element {
  return (
    <>
      {tool.readOnly ? <Badge text="only reads" tone="good" /> : null}
      {tool.destructive ? <Badge text="can destroy" tone="warn" /> : null}
    </>
  );
}
