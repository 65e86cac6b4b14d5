import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ExplainAnswer, ExplainRequest, ToolList } from "../../../../src/operator/contract-policy.ts";
import { Badge } from "../../parts/badge.tsx";
import { countOf, moneyOf, visibleText } from "../../parts/format.ts";
import { Problem } from "../../parts/problem.tsx";
import { changeQuery, place } from "../../routing/router.ts";
import { post } from "../../server/api.ts";
import { useAction } from "../../server/use-action.ts";
import { useResource } from "../../server/use-resource.ts";
import { Form } from "../../parts/form.tsx";

const FIELDS = ["client", "tool", "args", "groups", "claims", "label"] as const;
type Asked = Readonly<Record<(typeof FIELDS)[number], string>>;

/**
 * Shows the policy decision for a call without making it. The form is stored in the address, and a shared address runs
 * it when it is opened.
 */
export function ExplainForm({ client }: { readonly client: string }): JSX.Element {
  const [form, setForm] = useState<Asked>(() => ({ ...askedIn(place.peek().query), client }));
  const [answer, setAnswer] = useState<ExplainAnswer | undefined>(undefined);
  useEffect(() => setForm((last) => ({ ...last, client })), [client]);
  const action = useAction(async () => {
    setAnswer(undefined);
    setAnswer(await post<ExplainAnswer>("policy/explain", requestOf(form)));
  });
  useEffect(() => {
    if (form.tool !== "") action.run();
  }, []);
  const set = (name: keyof Asked) => (value: string) => setForm({ ...form, [name]: value });
  const ask = (): void => {
    changeQuery(form);
    action.run();
  };
  return (
    <section aria-labelledby="explain-title">
      <h2 id="explain-title">What would the policy say?</h2>
      <Form class="explain" onSubmit={ask}>
        <TextField label="Client" value={form.client} onValue={set("client")} isRequired />
        <ToolField value={form.tool} onValue={set("tool")} />
        <JsonField label="Arguments, as JSON" value={form.args} onValue={set("args")} />
        <TextField label="Groups, with commas" value={form.groups} onValue={set("groups")} />
        <TextField label="Label" value={form.label} onValue={set("label")} />
        <JsonField label="Claims of the token, as JSON" value={form.claims} onValue={set("claims")} />
        <button type="submit" class="primary" disabled={action.isBusy}>
          Explain
        </button>
      </Form>
      <Problem error={action.error} />
      <div role="status">{answer === undefined ? null : <Answer answer={answer} />}</div>
    </section>
  );
}

function askedIn(query: URLSearchParams): Asked {
  const [client = "", tool = "", args = "", groups = "", claims = "", label = ""] = FIELDS.map(
    (name) => query.get(name) ?? "",
  );
  return { client, tool, args, groups, claims, label };
}

function requestOf({ client, tool, args, groups, claims, label }: Asked): ExplainRequest {
  const named = groups
    .split(",")
    .map((group) => group.trim())
    .filter((group) => group !== "");
  return {
    client,
    tool,
    args: jsonIn("arguments", args, '{"path": "/workspace/a.txt"}'),
    groups: named,
    claims: jsonIn("claims", claims, '{"level": 3}'),
    ...(label === "" ? {} : { label }),
  };
}

function jsonIn(what: string, text: string, example: string): unknown {
  try {
    return JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new Error(`The ${what} are not JSON. Example: ${example}`, { cause: error });
  }
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function TextField({
  label,
  value,
  onValue,
  isRequired = false,
}: FieldProps & { readonly isRequired?: boolean }): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <input required={isRequired} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
    </label>
  );
}

function JsonField({ label, value, onValue }: FieldProps): JSX.Element {
  return (
    <label class="field grow">
      <span>{label}</span>
      <textarea
        rows={2}
        class="mono"
        spellcheck={false}
        placeholder="{}"
        value={value}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </label>
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

function Answer({ answer }: { readonly answer: ExplainAnswer }): JSX.Element {
  return (
    <div class="note">
      <p>
        <Badge text={answer.decision} /> by rule <span class="mono">{visibleText(answer.rule)}</span>
        {answer.reason === undefined ? "" : `: ${visibleText(answer.reason)}`}
        {answer.confirm === undefined ? "" : ` The ${answer.confirm} is asked.`}
      </p>
      {answer.mistake === undefined ? null : <p>{`The call would fail: ${visibleText(answer.mistake)}`}</p>}
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
