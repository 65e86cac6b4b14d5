import type { JSX } from "preact";
import { Badge } from "../../parts/badge.tsx";
import { visibleText } from "../../parts/format.ts";
import { Empty } from "../../parts/problem.tsx";
import { Clock } from "../../parts/time.tsx";
import { useActivity } from "./use-activity.ts";
import { end, TableHead } from "../../parts/table-head.tsx";
import type { ShownSandbox } from "./shown-sandbox.ts";

export function NetworkTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const { entries } = useActivity(sandbox, ({ kind }) => kind === "network");
  if (entries.length === 0) {
    return (
      <Empty title="Nothing in this sandbox has tried to reach the network.">
        Each attempt appears with the rule that allowed or refused it.
      </Empty>
    );
  }
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Network attempts">
      <table>
        <TableHead columns={["Time", "Decision", "Host", end("Port"), "Rule"]} />
        <tbody>
          {entries.toReversed().map(({ seq, time, network }) =>
            network === undefined ? null : (
              <tr key={seq}>
                <td>
                  <Clock time={time} />
                </td>
                <td>
                  <Badge text={network.decision} />
                </td>
                <td class="mono">{visibleText(network.host)}</td>
                <td class="end num">{network.port}</td>
                <td>{visibleText(network.rule)}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}
