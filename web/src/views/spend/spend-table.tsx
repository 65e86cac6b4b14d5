import type { JSX } from "preact";
import type { SpendCount } from "../../../../src/operator/contract.ts";
import { countOf, moneyOf, visibleText } from "../../parts/format.ts";
import { href } from "../../routing/router.ts";
import { end, TableHead, unseen } from "../../parts/table-head.tsx";

interface SpendTableProps {
  readonly title: string;
  readonly filter: "client" | "tool";
  readonly from: string;
  readonly rows: readonly (SpendCount & { readonly name: string })[];
}

const WIDTH = 120;

/** Most expensive first. Each row links to its calls. */
export function SpendTable({ title, filter, from, rows }: SpendTableProps): JSX.Element {
  // When no call has a cost, rows are compared by calls.
  const hasCosts = rows.some(({ costMicros }) => costMicros > 0);
  const weightOf = ({ costMicros, calls }: SpendCount): number => (hasCosts ? costMicros : calls);
  const most = Math.max(...rows.map(weightOf), 1);
  const sorted = rows.toSorted((a, b) => b.costMicros - a.costMicros || b.calls - a.calls);
  return (
    <section>
      <h2>{title}</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label={title}>
        <table>
          <TableHead
            columns={[
              filter === "client" ? "Client" : "Tool",
              end("Spent"),
              end("Calls"),
              end("Refused"),
              end("Failed"),
              unseen("Share"),
            ]}
          />
          <tbody>
            {sorted.map((row) => (
              <tr key={row.name}>
                <th scope="row">
                  <a href={href(["ledger"], { [filter]: row.name, from })}>{visibleText(row.name)}</a>
                </th>
                <td class="end num">{moneyOf(row.costMicros)}</td>
                <td class="end num">{countOf(row.calls)}</td>
                <td class="end num">{countOf(row.refused)}</td>
                <td class="end num">{countOf(row.failed)}</td>
                <td class="share">
                  <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
                    <rect class="bar main" width={widthOf(weightOf(row) / most)} height="10" />
                  </svg>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** At least one pixel, so that a small share is visible. */
function widthOf(share: number): number {
  return share === 0 ? 0 : Math.max(1, share * WIDTH);
}
