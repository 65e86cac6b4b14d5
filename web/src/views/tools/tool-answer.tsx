import type { JSX } from "preact";
import type { ToolCallAnswer } from "../../../../src/operator/contract-policy.ts";
import { Badge } from "../../parts/badge.tsx";
import { CodeBlock, JsonBlock } from "../../parts/code-block.tsx";
import { durationOf, visibleText } from "../../parts/format.ts";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export function ToolAnswer({ answer }: { readonly answer: ToolCallAnswer }): JSX.Element {
  return (
    <>
      <p>
        <Badge text={answer.ok ? "ok" : "error"} /> <span class="muted num">{durationOf(answer.durationMs)}</span>
      </p>
      {answer.error === undefined ? null : (
        <p class="note bad">
          <strong>{visibleText(answer.error.message)}</strong> {visibleText(answer.error.hint ?? "")}
        </p>
      )}
      {answer.content.map((item, index) => (
        <ContentItem key={index} item={item} number={index + 1} />
      ))}
      {answer.structured === undefined ? null : (
        <details>
          <summary>Structured</summary>
          <JsonBlock label="Structured result" value={answer.structured} />
        </details>
      )}
    </>
  );
}

/** Shows texts and raster images directly, and everything else as JSON. */
function ContentItem({ item, number }: { readonly item: unknown; readonly number: number }): JSX.Element {
  const fields: Readonly<Record<string, unknown>> = typeof item === "object" && item !== null ? { ...item } : {};
  const { type, text, data, mimeType } = fields;
  if (type === "text" && typeof text === "string") return <CodeBlock label={`Content ${number}`} text={text} />;
  if (type === "image" && typeof data === "string" && typeof mimeType === "string" && PICTURES.includes(mimeType)) {
    return <img src={`data:${mimeType};base64,${data}`} alt={`Picture ${number} of the answer`} />;
  }
  return <JsonBlock label={`Content ${number}`} value={item} />;
}
