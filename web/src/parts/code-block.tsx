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

/** Whatever came as JSON, as text. */
export function JsonBlock({ label, value }: { readonly label: string; readonly value: unknown }): JSX.Element {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "nothing");
  return <CodeBlock label={label} text={text} />;
}
