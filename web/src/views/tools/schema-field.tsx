import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { visibleText } from "../../parts/format.ts";
import type { FieldSchema } from "./schema.ts";

interface SchemaFieldProps {
  readonly field: FieldSchema;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

export function SchemaField({ field, value, onValue }: SchemaFieldProps): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>
        <span class="mono">{visibleText(field.name)}</span>
        {field.isRequired ? <span class="muted"> needed</span> : null}
        {field.kind === "json" ? <span class="muted"> as JSON</span> : null}
      </label>
      <Input id={id} field={field} value={value} onValue={onValue} />
      {field.description === "" ? null : <small class="muted">{visibleText(field.description)}</small>}
    </div>
  );
}

function Input({ id, field, value, onValue }: SchemaFieldProps & { readonly id: string }): JSX.Element {
  switch (field.kind) {
    case "boolean":
    case "choice":
      return (
        <select
          id={id}
          name={field.name}
          value={value}
          required={field.isRequired}
          onChange={(event) => onValue(event.currentTarget.value)}
        >
          <option value="">{field.isRequired ? "choose" : "as usual"}</option>
          {(field.kind === "boolean" ? ["true", "false"] : field.choices).map((choice) => (
            <option key={choice} value={choice}>
              {visibleText(choice)}
            </option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          id={id}
          name={field.name}
          type="number"
          step="any"
          value={value}
          required={field.isRequired}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      );
    case "text":
    case "json":
      return (
        <textarea
          id={id}
          name={field.name}
          rows={1}
          class="mono"
          spellcheck={false}
          value={value}
          required={field.isRequired && field.kind === "json"}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      );
  }
}
