import type { JSX } from "preact";
import type { Now } from "../../../../src/operator/contract.ts";
import { now } from "../../live/now-store.ts";
import { countOf } from "../../parts/format.ts";
import { Loading } from "../../parts/problem.tsx";
import { href } from "../../routing/router.ts";
import { Page } from "../../shell/page.tsx";
import { CallTable } from "./call-table.tsx";
import { HealthList } from "./health-list.tsx";
import { SandboxTable } from "./sandbox-table.tsx";

export function NowView(): JSX.Element {
  const current = now.value;
  return (
    <Page title="Now">
      {current === undefined ? (
        <Loading what="what happens now" />
      ) : (
        <>
          <Figures now={current} />
          <SandboxTable sandboxes={current.sandboxes} />
          <CallTable calls={current.calls} />
          <HealthList health={current.health} />
        </>
      )}
    </Page>
  );
}

function Figures({ now: { queue, approvals, sandboxes, health } }: { readonly now: Now }): JSX.Element {
  const busy = sandboxes.filter(({ running }) => running !== null).length;
  return (
    <dl class="figures">
      <Figure name="Calls on their way" value={countOf(queue.running)} />
      <Figure
        name="Waiting for approval"
        value={countOf(approvals.length)}
        {...(approvals.length > 0 ? { to: href(["approvals"]) } : {})}
      />
      <Figure name="Sandboxes" value={countOf(sandboxes.length)} detail={`${countOf(busy)} at work`} />
      <Figure
        name="Standing ready"
        value={countOf(queue.ready)}
        detail={queue.most > 0 ? `${countOf(queue.alive)} of ${countOf(queue.most)} alive` : ""}
      />
      <Figure
        name="Health"
        value={health.status}
        tone={health.status === "ok" ? "good" : health.status === "degraded" ? "warn" : "bad"}
      />
    </dl>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly detail?: string;
  readonly to?: string;
  readonly tone?: string;
}

function Figure({ name, value, detail, to, tone }: FigureProps): JSX.Element {
  return (
    <div class={`figure ${tone ?? ""}`}>
      <dt>{name}</dt>
      <dd>
        {to === undefined ? value : <a href={to}>{value}</a>} {detail === undefined ? null : <small>{detail}</small>}
      </dd>
    </div>
  );
}
