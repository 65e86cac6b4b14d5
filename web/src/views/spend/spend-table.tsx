import type { JSX } from "preact";
import type { SpendCount } from "../../../../src/dashboard/contract.ts";
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

/** Most expensive first; each leads to its calls. */
export function SpendTable({ title, filter, from, rows }: SpendTableProps): JSX.Element {
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
                    <rect class="bar main" width={Math.max(1, (weightOf(row) / most) * WIDTH)} height="10" />
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

/** Where nothing costs anything, calls are what can be compared. */
function weightOf(row: SpendCount): number {
  return row.costMicros > 0 ? row.costMicros : row.calls / 1e6;
}
