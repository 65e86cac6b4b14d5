import { ERROR_KINDS, type ErrorKindFacts } from "../../src/errors/kinds.ts";
import type { Generator } from "./generator.ts";
import { toTable } from "./markdown-table.ts";

const INTRODUCTION = `# Errors

<!-- Generated from src/errors/kinds.ts by npm run generate. Edit that file. -->

Every failure has one \`kind\`. It is in \`error.data.kind\` on each protocol revision, beside \`message\`, \`trace_id\` and
\`retryable\`. Look at the kind: the JSON-RPC code of one kind differs between revisions.

- **code**: the JSON-RPC code on revisions up to 2025-11-25 and for plain JSON-RPC clients.
- **modern code**: the code on 2026-07-28 and later.
- **tool error**: the revisions on which a call of a tool gets a result with \`isError: true\` in place of a protocol error, so
  that a model can read it and repair the call.
- **HTTP**: the status where the transport answers with one.

`;

export const errorReference: Generator = () => {
  const kinds: [string, ErrorKindFacts][] = Object.entries(ERROR_KINDS);
  const table = toTable(
    ["kind", "code", "modern code", "tool error", "retryable", "HTTP", "what to do"],
    kinds.map(([kind, facts]) => [
      `\`${kind}\``,
      String(facts.code),
      String(facts.modernCode),
      facts.toolError,
      facts.retryable ? "yes" : "no",
      String(facts.httpStatus),
      facts.suggestion,
    ]),
  );
  return new Map([["docs/reference/errors.md", INTRODUCTION + table]]);
};
