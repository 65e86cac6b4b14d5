import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ClientList, ToolList } from "../../../../src/operator/contract-policy.ts";
import { changeQuery } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { type Filters, FILTERS, fromLocalInput, toLocalInput } from "./filters.ts";

const TYPING_MS = 250;
const OUTCOMES = ["ok", "refused", "failed", "cancelled", "timeout", "suspended", "unknown"];
const KINDS = [
  "tool",
  "resource",
  "prompt",
  "completion",
  "list",
  "task",
  "admin",
  "refusals",
  "checkpoint",
  "cut",
  "loss",
  "acknowledgement",
];

export function FilterForm({ filters }: { readonly filters: Filters }): JSX.Element {
  const clients = useResource<ClientList>("clients");
  const tools = useResource<ToolList>("tools");
  const hasAny = Object.keys(filters).length > 0;
  return (
    <form class="filters" role="search" aria-label="Filter the ledger" onSubmit={(event) => event.preventDefault()}>
      <TextFilter name="text" label="Text" value={filters.text} placeholder="in arguments and results" isFirst />
      <TextFilter
        name="client"
        label="Client"
        value={filters.client}
        options={clients.data?.clients.map(({ client }) => client)}
      />
      <TextFilter name="tool" label="Tool" value={filters.tool} options={tools.data?.tools.map(({ name }) => name)} />
      <Choice name="decision" label="Decision" value={filters.decision} options={["allow", "deny"]} />
      <Choice name="outcome" label="Outcome" value={filters.outcome} options={OUTCOMES} />
      <Choice name="kind" label="Kind" value={filters.kind} options={KINDS} />
      <TimeFilter name="from" label="From" value={filters.from} />
      <TimeFilter name="to" label="To" value={filters.to} />
      {(["rule", "sandbox", "trace"] as const).map((name) =>
        filters[name] === undefined ? null : <TextFilter key={name} name={name} label={name} value={filters[name]} />,
      )}
      {hasAny ? (
        <button
          type="button"
          class="quiet"
          onClick={() => changeQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
        >
          Clear
        </button>
      ) : null}
    </form>
  );
}

interface TextFilterProps {
  readonly name: string;
  readonly label: string;
  readonly value: string | undefined;
  readonly options?: readonly string[] | undefined;
  readonly placeholder?: string;
  readonly isFirst?: boolean;
}

/** Updates the filter after a pause in typing. */
function TextFilter({ name, label, value = "", options, placeholder, isFirst }: TextFilterProps): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (field.current !== null && field.current !== document.activeElement) field.current.value = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const listId = `options-${name}`;
  return (
    <label class="field">
      <span>{label}</span>
      <input
        ref={field}
        name={name}
        type="search"
        defaultValue={value}
        placeholder={placeholder}
        autoComplete="off"
        list={options === undefined ? undefined : listId}
        {...(isFirst === true ? { "data-filter": true } : {})}
        onInput={(event) => {
          const text = event.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => changeQuery({ [name]: text }), TYPING_MS);
        }}
      />
      {options === undefined ? null : (
        <datalist id={listId}>
          {options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </label>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly value: string | undefined;
  readonly options: readonly string[];
}

function Choice({ name, label, value = "", options }: ChoiceProps): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => changeQuery({ [name]: event.currentTarget.value })}>
        <option value="">any</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  );
}

function TimeFilter({
  name,
  label,
  value,
}: {
  readonly name: string;
  readonly label: string;
  readonly value: string | undefined;
}): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="datetime-local"
        name={name}
        value={toLocalInput(value)}
        onChange={(event) => changeQuery({ [name]: fromLocalInput(event.currentTarget.value) })}
      />
    </label>
  );
}
