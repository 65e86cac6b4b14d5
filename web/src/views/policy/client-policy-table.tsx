import type { JSX } from "preact";
import type { ClientPolicy } from "../../../../src/operator/contract-policy.ts";
import { Badge } from "../../parts/badge.tsx";
import { visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { href, place } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { TableHead } from "../../parts/table-head.tsx";

/** The query parameters that describe the caller in addition to its name. */
const CALLER_FIELDS = ["groups", "claims", "label"] as const;

export function ClientPolicyTable({ client }: { readonly client: string }): JSX.Element {
  const { query } = place.value;
  const caller = Object.fromEntries(CALLER_FIELDS.map((name) => [name, query.get(name) ?? undefined]));
  const isPlain = Object.values(caller).every((value) => value === undefined);
  const policy = useResource<ClientPolicy>("policy", { client, ...caller });
  return (
    <section aria-labelledby="client-policy-title">
      <header class="section-head">
        <h2 id="client-policy-title">What {visibleText(client)} sees and may do</h2>
        {policy.data === undefined ? null : (
          <span class="muted mono">{`revision ${visibleText(policy.data.revision)}`}</span>
        )}
      </header>
      <p class="muted">
        {isPlain
          ? "Without groups, claims or a label: rules that look at those of a token, or at the label of a client, may decide otherwise. Give them above."
          : "With the groups, claims and label given above."}
      </p>
      <Problem error={policy.error} onRetry={policy.reload} />
      {policy.data === undefined ? (
        policy.isLoading ? (
          <Loading what="the policy" />
        ) : null
      ) : (
        <Rules policy={policy.data} />
      )}
    </section>
  );
}

function Rules({ policy }: { readonly policy: ClientPolicy }): JSX.Element {
  if (policy.tools.length === 0) return <Empty title="This client sees no tool." />;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Tools of this client">
      <table>
        <TableHead columns={["Tool", "Listed", "Decision", "Rule", "Reason"]} />
        <tbody>
          {policy.tools.map(({ tool, visible, decision, rule, reason }) => (
            <tr key={tool}>
              <th scope="row">
                <a class="mono" href={href(["tools", tool])}>
                  {visibleText(tool)}
                </a>
              </th>
              <td>{visible ? "yes" : "no"}</td>
              <td>
                <Badge text={decision} />
              </td>
              <td class="mono">{visibleText(rule)}</td>
              <td>{visibleText(reason ?? "")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
