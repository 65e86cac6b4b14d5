import type { ComponentChildren, JSX } from "preact";
import type { LedgerDetail } from "../../../../src/operator/contract.ts";
import { now } from "../../live/now-store.ts";
import { Badge } from "../../parts/badge.tsx";
import { ArgumentsBlock, JsonBlock } from "../../parts/code-block.tsx";
import { countOf, durationOf, moneyOf, visibleText } from "../../parts/format.ts";
import { Loading, Problem } from "../../parts/problem.tsx";
import { Clock } from "../../parts/time.tsx";
import { href } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";
import { currentFilters } from "./filters.ts";
import { StageBars } from "./stage-bars.tsx";

/** All details of one call. */
export function LedgerCall({ seq }: { readonly seq: string }): JSX.Element {
  const call = useResource<LedgerDetail>(`ledger/${encodeURIComponent(seq)}`);
  const filters = currentFilters();
  const number = Number(seq);
  return (
    <Page
      title={`Call ${seq}`}
      actions={
        <>
          <a class="button" href={href(["ledger"], filters)}>
            Back to the list
          </a>
          {number > 1 ? (
            <a class="button" href={href(["ledger", number - 1], filters)}>
              Older
            </a>
          ) : null}
          <a class="button" href={href(["ledger", number + 1], filters)}>
            Newer
          </a>
        </>
      }
    >
      <Problem error={call.error} onRetry={call.reload} />
      {call.data === undefined ? call.isLoading ? <Loading what="the call" /> : null : <CallBody call={call.data} />}
    </Page>
  );
}

function CallBody({ call }: { readonly call: LedgerDetail }): JSX.Element {
  return (
    <>
      <CallFacts call={call} />
      {call.stages === undefined ? <NoStages kind={call.kind} /> : <StageBars stages={call.stages} />}
      <div class="columns">
        <section aria-labelledby="args-title">
          <h2 id="args-title">Arguments</h2>
          <ArgumentsBlock value={call.args} />
        </section>
        <section aria-labelledby="result-title">
          <h2 id="result-title">Result</h2>
          <JsonBlock label="Result" value={call.result} />
        </section>
      </div>
      <section aria-labelledby="chain-title">
        <h2 id="chain-title">Place in the chain</h2>
        <dl class="facts stacked">
          <Fact name="Number">{countOf(call.seq)}</Fact>
          <Fact name="Hash">
            <span class="mono break">{call.hash}</span>
          </Fact>
          <Fact name="Of the row before">
            <span class="mono break">{call.previousHash ?? "none: this is the first row"}</span>
          </Fact>
        </dl>
      </section>
    </>
  );
}

/** Rows about acts of operators, and rows that the ledger writes about itself, have no stages. */
function NoStages({ kind }: { readonly kind: string }): JSX.Element | null {
  if (["admin", "refusals", "checkpoint", "cut", "loss", "acknowledgement"].includes(kind)) return null;
  return (
    <section aria-labelledby="stages-title">
      <h2 id="stages-title">Time by stage</h2>
      <p class="muted">
        It is not known any more: the server remembers where time went for its last 2,000 calls, and only until it is
        started again.
      </p>
    </section>
  );
}

function CallFacts({ call }: { readonly call: LedgerDetail }): JSX.Element {
  return (
    <dl class="facts">
      <Fact name="Tool">
        <a class="mono" href={href(["tools", call.tool])}>
          {visibleText(call.tool)}
        </a>
        {call.calledAs === call.tool || call.calledAs === "" ? null : (
          <span class="muted"> called as {visibleText(call.calledAs)}</span>
        )}
      </Fact>
      <Fact name="Client">
        <a href={href(["policy"], { client: call.client })}>{visibleText(call.client)}</a>{" "}
        {call.label === null ? null : <span class="muted">{visibleText(call.label)}</span>}
      </Fact>
      <Fact name="Time">
        <Clock time={call.time} withDate />
      </Fact>
      <Fact name="Decision">
        <Badge text={call.decision} /> <span class="muted">{visibleText(call.rule)}</span>
      </Fact>
      <Fact name="Outcome">
        <Badge text={call.outcome} /> {call.errorKind === null ? null : <span class="mono">{call.errorKind}</span>}
      </Fact>
      <Fact name="Duration and cost">
        <span class="num">{`${durationOf(call.durationMs)}, ${moneyOf(call.costMicros)}`}</span>
      </Fact>
      <Fact name="Sandbox">
        <SandboxLink ledgerId={call.sandbox} />
      </Fact>
      <Fact name="Came by">{`${call.transport}, ${call.kind}`}</Fact>
      <Fact name="Trace">
        <a class="mono break" href={href(["ledger"], { trace: call.traceId })}>
          {visibleText(call.traceId)}
        </a>
      </Fact>
      <Fact name="Policy">
        <span class="mono break">{visibleText(call.policyRevision)}</span>
      </Fact>
      {call.flags.length === 0 ? null : <Fact name="Marks">{visibleText(call.flags.join(", "))}</Fact>}
    </dl>
  );
}

/** Links to the sandbox while it is alive, and afterwards to its ledger rows. */
function SandboxLink({ ledgerId }: { readonly ledgerId: string | null }): JSX.Element {
  if (ledgerId === null) return <>none</>;
  const alive = now.value?.sandboxes.find((sandbox) => sandbox.ledgerId === ledgerId);
  return (
    <a
      class="mono"
      href={alive === undefined ? href(["ledger"], { sandbox: ledgerId }) : href(["sandboxes", alive.id])}
    >
      {alive?.id ?? visibleText(ledgerId)}
    </a>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
