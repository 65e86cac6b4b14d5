import type { JSX, TargetedEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalList, ApprovalNow } from "../../../../src/operator/contract.ts";
import { approvalIds } from "../../live/now-store.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { href } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { isNotifying, switchNotifying } from "../../shell/approval-bell.ts";
import { Page } from "../../shell/page.tsx";
import { ApprovalCard } from "./approval-card.tsx";

export function ApprovalsView({ rest: [id] }: { readonly rest: readonly string[] }): JSX.Element {
  const list = useResource<ApprovalList>("approvals");
  const waiting = approvalIds.value.join(" ");
  const shown = useRef(waiting);
  useEffect(() => {
    if (shown.current !== waiting) list.reload();
    shown.current = waiting;
  }, [waiting]);
  return (
    <Page title="Approvals" actions={<NotifySwitch />}>
      <Problem error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        list.isLoading ? (
          <Loading what="what waits" />
        ) : null
      ) : id !== undefined ? (
        <OneApproval approval={list.data.approvals.find((each) => each.id === id)} onDone={list.reload} />
      ) : list.data.approvals.length === 0 ? (
        <Empty title="Nothing waits for a decision.">
          A call waits here when a rule of the policy asks for an operator. The page's title tells how many there are.
        </Empty>
      ) : (
        list.data.approvals.map((approval) => (
          <ApprovalCard key={approval.id} approval={approval} onDone={list.reload} />
        ))
      )}
    </Page>
  );
}

function OneApproval({
  approval,
  onDone,
}: {
  readonly approval: ApprovalNow | undefined;
  readonly onDone: () => void;
}): JSX.Element {
  return (
    <>
      {approval === undefined ? (
        <Empty title="This call does not wait any more.">It was decided on, or was given up.</Empty>
      ) : (
        <ApprovalCard approval={approval} onDone={onDone} />
      )}
      <p>
        <a href={href(["approvals"])}>All that wait</a>
      </p>
    </>
  );
}

function NotifySwitch(): JSX.Element {
  const [isRefused, setRefused] = useState(false);
  const onChange = async ({ currentTarget: box }: TargetedEvent<HTMLInputElement>): Promise<void> => {
    const isWanted = box.checked;
    const isOn = await switchNotifying(isWanted);
    // When the state does not change, nothing is rendered again, so the checkbox is reset here.
    box.checked = isOn;
    setRefused(isWanted && !isOn);
  };
  return (
    <>
      {isRefused ? (
        <p class="warn-text" role="alert">
          This browser does not let the page notify you: allow it in the settings of this site.
        </p>
      ) : null}
      <label class="check">
        <input type="checkbox" checked={isNotifying.value} onChange={(event) => void onChange(event)} />
        <span>Notify me</span>
      </label>
    </>
  );
}
