import type { JSX } from "preact";
import type { HealthNow } from "../../../../src/operator/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { visibleText } from "../../parts/format.ts";

export function HealthList({ health }: { readonly health: HealthNow }): JSX.Element {
  return (
    <section aria-labelledby="health-title">
      <header class="section-head">
        <h2 id="health-title">Health</h2>
      </header>
      <ul class="health">
        {Object.entries(health.checks).map(([name, check]) => (
          <li key={name}>
            <Badge text={check.status} />
            <strong>{name}</strong>
            <span class="muted">{visibleText(check.message)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
