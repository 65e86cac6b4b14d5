import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ExplainAnswer, ExplainRequest, ToolList } from "../../../../src/dashboard/contract-policy.ts";
import { Badge } from "../../parts/badge.tsx";
import { countOf, moneyOf, visibleText } from "../../parts/format.ts";
import { Problem } from "../../parts/problem.tsx";
import { post } from "../../server/api.ts";
import { useAction } from "../../server/use-action.ts";
import { useResource } from "../../server/use-resource.ts";
import { Form } from "../../parts/form.tsx";

/** What the policy would say to a call, without making it. */
export function ExplainForm({ client }: { readonly client: string }): JSX.Element {
  const [form, setForm] = useState({ client, tool: "", args: "{}" });
  const [answer, setAnswer] = useState<ExplainAnswer | undefined>(undefined);
  useEffect(() => setForm((last) => ({ ...last, client })), [client]);
  const action = useAction(async () => {
    setAnswer(undefined);
    const request: ExplainRequest = { client: form.client, tool: form.tool, args: parsedArgs(form.args) };
    setAnswer(await post<ExplainAnswer>("policy/explain", request));
  });
  return (
    <section aria-labelledby="explain-title">
      <h2 id="explain-title">What would the policy say?</h2>
      <Form class="explain" onSubmit={action.run}>
        <label class="field">
          <span>Client</span>
          <input
            required
            value={form.client}
            onInput={(event) => setForm({ ...form, client: event.currentTarget.value })}
          />
        </label>
        <ToolField value={form.tool} onValue={(tool) => setForm({ ...form, tool })} />
        <label class="field grow">
          <span>Arguments, as JSON</span>
          <textarea
            rows={2}
            class="mono"
            spellcheck={false}
            value={form.args}
            onInput={(event) => setForm({ ...form, args: event.currentTarget.value })}
          />
        </label>
        <button type="submit" class="primary" disabled={action.isBusy}>
          Explain
        </button>
      </Form>
      <Problem error={action.error} />
      <div role="status">{answer === undefined ? null : <Answer answer={answer} />}</div>
    </section>
  );
}

function ToolField({
  value,
  onValue,
}: {
  readonly value: string;
  readonly onValue: (tool: string) => void;
}): JSX.Element {
  const tools = useResource<ToolList>("tools");
  return (
    <label class="field">
      <span>Tool</span>
      <input
        required
        list="explain-tools"
        value={value}
        autoComplete="off"
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      <datalist id="explain-tools">
        {tools.data?.tools.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

function parsedArgs(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch (error) {
    throw new Error('The arguments are not JSON. Example: {"path": "/workspace/a.txt"}', { cause: error });
  }
}

function Answer({ answer }: { readonly answer: ExplainAnswer }): JSX.Element {
  return (
    <div class="note">
      <p>
        <Badge text={answer.decision} /> by rule <span class="mono">{visibleText(answer.rule)}</span>
        {answer.reason === undefined ? "" : `: ${visibleText(answer.reason)}`}
        {answer.confirm === undefined ? "" : ` The ${answer.confirm} is asked.`}
      </p>
      <p class="muted">
        {`Policy ${visibleText(answer.policy)}, operation ${visibleText(answer.operation)}; ${answer.visible ? "the client sees this tool" : "the client does not see this tool"}; reserves ${moneyOf(answer.reserves)}.`}
      </p>
      {answer.limits.length === 0 ? null : (
        <ul>
          {answer.limits.map(({ rule, limit, counts }) => (
            <li key={rule}>{`${visibleText(rule)}: at most ${countOf(limit)} ${visibleText(counts)}`}</li>
          ))}
        </ul>
      )}
      {answer.lookedAt.length === 0 ? null : (
        <p class="muted">{`Looked at: ${visibleText(answer.lookedAt.join(", "))}`}</p>
      )}
    </div>
  );
}
