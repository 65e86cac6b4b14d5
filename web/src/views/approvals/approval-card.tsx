import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { ApprovalDecision, ApprovalNow } from "../../../../src/operator/contract.ts";
import { announce } from "../../parts/announcer.tsx";
import { ArgumentsBlock } from "../../parts/code-block.tsx";
import { visibleText } from "../../parts/format.ts";
import { Problem } from "../../parts/problem.tsx";
import { Age, Until } from "../../parts/time.tsx";
import { href } from "../../routing/router.ts";
import { post } from "../../server/api.ts";
import { useAction } from "../../server/use-action.ts";
import { ProposedChangeView } from "./proposed-change-view.tsx";

interface ApprovalCardProps {
  readonly approval: ApprovalNow;
  readonly onDone: () => void;
}

export function ApprovalCard({ approval, onDone }: ApprovalCardProps): JSX.Element {
  const titleId = useId();
  return (
    <article class="card" aria-labelledby={titleId}>
      <header>
        <h2 id={titleId}>
          <a href={href(["policy"], { client: approval.principal })}>{visibleText(approval.principal)}</a> wants to call{" "}
          <span class="mono">{visibleText(approval.tool)}</span>
        </h2>
        <p class="muted">
          {approval.label === undefined ? null : `${visibleText(approval.label)}, `}
          asked <Age since={approval.createdAt} /> ago, refused by itself <Until time={approval.expiresAt} />,{" "}
          <a href={href(["approvals", approval.id])}>address of this call</a>
        </p>
      </header>
      <p>
        Rule <span class="mono">{visibleText(approval.rule)}</span>
        {approval.reason === undefined ? null : `: ${visibleText(approval.reason)}`}
      </p>
      {approval.sandbox === undefined ? null : (
        <p>
          In sandbox{" "}
          <a class="mono" href={href(["sandboxes", approval.sandbox])}>
            {approval.sandbox}
          </a>
        </p>
      )}
      {approval.change === undefined ? null : (
        <>
          <h3 class="mono">{visibleText(approval.change.path)}</h3>
          <ProposedChangeView change={approval.change} />
        </>
      )}
      <details open={approval.change === undefined}>
        <summary>Arguments</summary>
        <ArgumentsBlock value={approval.args} />
      </details>
      <Decision approval={approval} onDone={onDone} />
    </article>
  );
}

function Decision({ approval, onDone }: ApprovalCardProps): JSX.Element {
  const [reason, setReason] = useState("");
  const decide = (decision: ApprovalDecision["decision"]) => async (): Promise<void> => {
    const answer: ApprovalDecision = { decision, reason };
    await post(`approvals/${encodeURIComponent(approval.id)}`, answer);
    announce(decision === "approve" ? "Approved." : "Denied.");
    onDone();
  };
  const approve = useAction(decide("approve"));
  const deny = useAction(decide("deny"));
  const isBusy = approve.isBusy || deny.isBusy;
  return (
    <div class="decision">
      <label class="field">
        <span>Reason, for the ledger</span>
        <input value={reason} maxLength={300} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <button type="button" class="primary" disabled={isBusy} onClick={approve.run}>
        Approve
      </button>
      <button type="button" class="danger" disabled={isBusy} onClick={deny.run}>
        Deny
      </button>
      <Problem error={approve.error ?? deny.error} />
    </div>
  );
}
