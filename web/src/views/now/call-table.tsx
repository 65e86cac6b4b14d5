import type { JSX } from "preact";
import type { CallNow } from "../../../../src/operator/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { visibleText } from "../../parts/format.ts";
import { Still } from "../../parts/memo.tsx";
import { Empty } from "../../parts/problem.tsx";
import { Age } from "../../parts/time.tsx";
import { href } from "../../routing/router.ts";
import { askToPause } from "../../shell/pause-dialog.tsx";
import { end, TableHead, unseen } from "../../parts/table-head.tsx";

export function CallTable({ calls }: { readonly calls: readonly CallNow[] }): JSX.Element {
  return (
    <section aria-labelledby="calls-title">
      <header class="section-head">
        <h2 id="calls-title">Calls in flight</h2>
      </header>
      {calls.length === 0 ? (
        <Empty title="No call is on its way.">
          What was called before stands in the <a href={href(["ledger"])}>ledger</a>.
        </Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-label="Calls in flight">
          <table>
            <TableHead columns={["Tool", "Client", "Stage", "Sandbox", end("Since"), unseen("Actions")]} />
            <tbody>
              {calls.map((call) => (
                <Still key={call.id} value={call}>
                  {row}
                </Still>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function row(call: CallNow): JSX.Element {
  return (
    <tr>
      <th scope="row" class="mono">
        {visibleText(call.tool)}
      </th>
      <td>
        {visibleText(call.principal)}{" "}
        {call.label === undefined ? null : <span class="muted">{visibleText(call.label)}</span>}
      </td>
      <td>
        <Badge text={call.stage} />
      </td>
      <td>
        {call.sandbox === undefined ? (
          <span class="muted">–</span>
        ) : (
          <a class="mono" href={href(["sandboxes", call.sandbox])}>
            {call.sandbox}
          </a>
        )}
      </td>
      <td class="end">
        <Age since={call.startedAt} />
      </td>
      <td class="end">
        <button type="button" class="small quiet" onClick={() => askToPause(call.principal)}>
          Pause {visibleText(call.principal)}
        </button>
      </td>
    </tr>
  );
}
