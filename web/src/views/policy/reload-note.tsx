import type { JSX } from "preact";
import type { ReloadState } from "../../../../src/operator/contract-policy.ts";
import { visibleText } from "../../parts/format.ts";
import { Clock } from "../../parts/time.tsx";
import { useResource } from "../../server/use-resource.ts";

/** Shows the result of the last reload of the configuration, if there was one. */
export function ReloadNote(): JSX.Element | null {
  const { data } = useResource<ReloadState>("reload");
  if (data === undefined || data.at === undefined) return null;
  if (data.ok) {
    return (
      <p class="muted">
        The configuration was read again at <Clock time={data.at} withDate /> and is in force.
      </p>
    );
  }
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>The configuration could not be read again</strong> at <Clock time={data.at} withDate />. The one before
        is still in force.
      </p>
      <ul>
        {data.problems.map((problem) => (
          <li key={problem}>{visibleText(problem)}</li>
        ))}
      </ul>
    </div>
  );
}
