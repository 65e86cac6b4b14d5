import type { JSX } from "preact";
import type { ClientFacts, ClientList } from "../../../../src/operator/contract-policy.ts";
import { pauses } from "../../live/now-store.ts";
import { Badge } from "../../parts/badge.tsx";
import { countOf, moneyOf, visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { href, place } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";
import { askToPause } from "../../shell/pause-dialog.tsx";
import { ClientPolicyTable } from "./client-policy-table.tsx";
import { ExplainForm } from "./explain-form.tsx";
import { ReloadNote } from "./reload-note.tsx";
import { end, TableHead, unseen } from "../../parts/table-head.tsx";

export function PolicyView(): JSX.Element {
  const list = useResource<ClientList>("clients");
  const client = place.value.query.get("client") ?? list.data?.clients[0]?.client;
  return (
    <Page title="Clients and policy">
      <ReloadNote />
      <Problem error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        list.isLoading ? (
          <Loading what="clients" />
        ) : null
      ) : (
        <Clients clients={list.data.clients} current={client} />
      )}
      <ExplainForm client={client ?? ""} />
      {client === undefined ? null : <ClientPolicyTable client={client} />}
    </Page>
  );
}

function Clients({
  clients,
  current,
}: {
  readonly clients: readonly ClientFacts[];
  readonly current: string | undefined;
}): JSX.Element {
  if (clients.length === 0)
    return <Empty title="No client is known yet.">One appears with its first call, or when the policy names it.</Empty>;
  return (
    <section aria-labelledby="clients-title">
      <h2 id="clients-title">Clients</h2>
      <div class="scroll short" tabIndex={0} role="group" aria-label="Clients">
        <table>
          <TableHead columns={["Client", end("Calls"), end("Refused"), end("Spent"), unseen("Actions")]} />
          <tbody>
            {clients.map((facts) => (
              <ClientRow key={facts.client} facts={facts} isCurrent={facts.client === current} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ClientRow({ facts, isCurrent }: { readonly facts: ClientFacts; readonly isCurrent: boolean }): JSX.Element {
  const isPaused = pauses.value.some(({ client }) => client === facts.client);
  return (
    <tr class={isCurrent ? "current" : ""}>
      <th scope="row">
        <a href={href(["policy"], { client: facts.client })} aria-current={isCurrent ? "true" : undefined}>
          {visibleText(facts.client)}
        </a>{" "}
        {isPaused ? <Badge text="paused" /> : null}
      </th>
      <td class="end num">
        <a href={href(["ledger"], { client: facts.client })}>{countOf(facts.calls)}</a>
      </td>
      <td class="end num">{countOf(facts.refused)}</td>
      <td class="end num">{moneyOf(facts.costMicros)}</td>
      <td class="end">
        {isPaused ? null : (
          <button type="button" class="small danger" onClick={() => askToPause(facts.client)}>
            Pause <span class="unseen">{visibleText(facts.client)}</span>
          </button>
        )}
      </td>
    </tr>
  );
}
