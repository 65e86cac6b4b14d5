import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ApprovalList } from "../../../../src/dashboard/contract.ts";
import { approvalCount } from "../../live/now-store.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { useResource } from "../../server/use-resource.ts";
import { isNotifying, switchNotifying } from "../../shell/approval-bell.ts";
import { Page } from "../../shell/page.tsx";
import { ApprovalCard } from "./approval-card.tsx";

export function ApprovalsView(): JSX.Element {
  const list = useResource<ApprovalList>("approvals");
  const count = approvalCount.value;
  const shownCount = useRef(count);
  useEffect(() => {
    if (shownCount.current !== count) list.reload();
    shownCount.current = count;
  }, [count]);
  return (
    <Page title="Approvals" actions={<NotifySwitch />}>
      <Problem error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        list.isLoading ? (
          <Loading what="what waits" />
        ) : null
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

function NotifySwitch(): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isNotifying.value}
        onChange={(event) => void switchNotifying(event.currentTarget.checked)}
      />
      <span>Notify me</span>
    </label>
  );
}
