import type { JSX } from "preact";
import { visibleText } from "./format.ts";

interface CodeBlockProps {
  readonly label: string;
  readonly text: string;
}

export function CodeBlock({ label, text }: CodeBlockProps): JSX.Element {
  return (
    <pre class="code" tabIndex={0} role="group" aria-label={label}>
      {visibleText(text)}
    </pre>
  );
}

/** Any JSON value, as text. */
export function JsonBlock({ label, value }: { readonly label: string; readonly value: unknown }): JSX.Element {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "nothing");
  return <CodeBlock label={label} text={text} />;
}

/**
 * Shows fields with several lines, such as code, as plain text, so that operators need not read them as JSON strings
 * before they approve.
 */
export function ArgumentsBlock({ value }: { readonly value: unknown }): JSX.Element {
  const fields = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  const long = fields.flatMap(([name, field]) =>
    typeof field === "string" && field.includes("\n") ? [[name, field] as const] : [],
  );
  if (long.length === 0) return <JsonBlock label="Arguments" value={value} />;
  const names = new Set(long.map(([name]) => name));
  const others = fields.filter(([name]) => !names.has(name));
  return (
    <>
      {others.length === 0 ? null : <JsonBlock label="Arguments" value={Object.fromEntries(others)} />}
      {long.map(([name, text]) => (
        <div key={name} class="argument">
          <span class="muted">{visibleText(name)}</span>
          <CodeBlock label={name} text={text} />
        </div>
      ))}
    </>
  );
}
