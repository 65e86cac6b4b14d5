import type { JSX } from "preact";
import type { LedgerDetail } from "../../../../src/operator/contract.ts";
import { durationOf } from "../../parts/format.ts";

type Stages = NonNullable<LedgerDetail["stages"]>;

const WIDTH = 600;

/** The duration of each stage, one after the other. */
export function StageBars({ stages }: { readonly stages: Stages }): JSX.Element {
  const totalMs = Math.max(
    stages.reduce((sum, { durationMs }) => sum + durationMs, 0),
    0.001,
  );
  let startMs = 0;
  return (
    <section aria-labelledby="stages-title">
      <h2 id="stages-title">Time by stage</h2>
      <table class="stages">
        <tbody>
          {stages.map(({ name, durationMs }) => {
            const x = (startMs / totalMs) * WIDTH;
            startMs += durationMs;
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="num end">{durationOf(durationMs)}</td>
                <td class="bar-cell">
                  <svg viewBox={`0 0 ${WIDTH} 12`} preserveAspectRatio="none" aria-hidden="true">
                    <rect
                      class="bar main"
                      x={Math.min(x, WIDTH - 2)}
                      width={Math.max(2, (durationMs / totalMs) * WIDTH)}
                      height="12"
                    />
                  </svg>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
