import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ToolCallAnswer, ToolCallRequest, ToolFacts } from "../../../../src/operator/contract-policy.ts";
import { JsonBlock } from "../../parts/code-block.tsx";
import { visibleText } from "../../parts/format.ts";
import { Problem } from "../../parts/problem.tsx";
import { post } from "../../server/api.ts";
import { useAction } from "../../server/use-action.ts";
import { argumentsOf, fieldsOf } from "./schema.ts";
import { SchemaField } from "./schema-field.tsx";
import { Marks } from "./tool-marks.tsx";
import { ToolAnswer } from "./tool-answer.tsx";
import { Form } from "../../parts/form.tsx";

/**
 * A form generated from the schema of the tool. The call passes policy, limits and ledger like every call, as a call of
 * the operator.
 */
export function ToolTrial({ tool }: { readonly tool: ToolFacts }): JSX.Element {
  const fields = useMemo(() => fieldsOf(tool.inputSchema), [tool]);
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const [answer, setAnswer] = useState<ToolCallAnswer | undefined>(undefined);
  const action = useAction(async () => {
    setAnswer(undefined);
    const request: ToolCallRequest = { name: tool.name, arguments: argumentsOf(fields, typed) };
    setAnswer(await post<ToolCallAnswer>("tools/call", request));
  });
  return (
    <div class="columns">
      <section aria-labelledby="try-title">
        <About tool={tool} />
        <h2 id="try-title">Try it</h2>
        <Form class="trial" onSubmit={action.run}>
          {fields.length === 0 ? <p class="muted">It takes no arguments.</p> : null}
          {fields.map((field) => (
            <SchemaField
              key={field.name}
              field={field}
              value={typed[field.name] ?? field.initial}
              onValue={(value) => setTyped((last) => ({ ...last, [field.name]: value }))}
            />
          ))}
          <p class="muted">The call is made as you, under the policy, and stands in the ledger.</p>
          <button type="submit" class={tool.destructive ? "danger solid" : "primary"} disabled={action.isBusy}>
            {action.isBusy ? "Calling…" : "Call"}
          </button>
        </Form>
        <details>
          <summary>Schema</summary>
          <JsonBlock label="Schema" value={tool.inputSchema} />
        </details>
      </section>
      <section aria-labelledby="answer-title">
        <h2 id="answer-title">Answer</h2>
        <Problem error={action.error} />
        <div role="status">
          {answer === undefined ? (
            <p class="muted">{action.isBusy ? "The call is on its way…" : "None yet."}</p>
          ) : (
            <ToolAnswer answer={answer} />
          )}
        </div>
      </section>
    </div>
  );
}

function About({ tool }: { readonly tool: ToolFacts }): JSX.Element {
  return (
    <>
      <p>
        <strong>{visibleText(tool.title)}</strong> <Marks tool={tool} />
      </p>
      <p class="description">{visibleText(tool.description)}</p>
    </>
  );
}
