import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SandboxNow } from "../../../../src/dashboard/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { bytesOf, countOf, visibleText } from "../../parts/format.ts";
import { Still } from "../../parts/memo.tsx";
import { Empty } from "../../parts/problem.tsx";
import { Age, Until } from "../../parts/time.tsx";
import { href } from "../../routing/router.ts";
import { end, TableHead } from "../../parts/table-head.tsx";

export function SandboxTable({ sandboxes }: { readonly sandboxes: readonly SandboxNow[] }): JSX.Element {
  const [text, setText] = useState("");
  const shown = text === "" ? sandboxes : sandboxes.filter((sandbox) => matches(sandbox, text.toLowerCase()));
  return (
    <section aria-labelledby="sandboxes-title">
      <header class="section-head">
        <h2 id="sandboxes-title">Sandboxes</h2>
        <input
          type="search"
          aria-label="Filter sandboxes"
          placeholder="Filter"
          data-filter
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {text === "" ? null : <span class="muted">{`${countOf(shown.length)} of ${countOf(sandboxes.length)}`}</span>}
      </header>
      {shown.length === 0 ? <NoSandbox isFiltered={text !== ""} /> : <Rows sandboxes={shown} />}
    </section>
  );
}

function NoSandbox({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  return isFiltered ? (
    <Empty title="No sandbox matches." />
  ) : (
    <Empty title="No sandbox is in use.">One appears here as soon as a client runs code, a command or a browser.</Empty>
  );
}

function Rows({ sandboxes }: { readonly sandboxes: readonly SandboxNow[] }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Sandboxes">
      <table>
        <TableHead
          columns={[
            "Sandbox",
            "State",
            "Owner",
            "Running",
            end("CPU"),
            end("Memory"),
            "Template",
            "Runtime",
            end("Age"),
            end("Ends"),
          ]}
        />
        <tbody>
          {sandboxes.map((sandbox) => (
            <Still key={sandbox.id} value={sandbox}>
              {row}
            </Still>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function row(sandbox: SandboxNow): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <a class="mono" href={href(["sandboxes", sandbox.id])}>
          {sandbox.id}
        </a>
      </th>
      <td>
        <Badge text={sandbox.state} />
        {sandbox.takenOverBy === undefined ? null : (
          <Badge text={`taken over by ${visibleText(sandbox.takenOverBy)}`} tone="warn" />
        )}
      </td>
      <td>{visibleText(sandbox.owner)}</td>
      <td class="mono">{sandbox.running ?? <span class="muted">–</span>}</td>
      <td class="end num">{sandbox.cpuPercent === undefined ? "–" : `${Math.round(sandbox.cpuPercent)} %`}</td>
      <td class="end num">{sandbox.memoryBytes === undefined ? "–" : bytesOf(sandbox.memoryBytes)}</td>
      <td>{visibleText(sandbox.template)}</td>
      <td>{sandbox.runtime}</td>
      <td class="end">
        <Age since={sandbox.createdAt} />
      </td>
      <td class="end">
        <Until time={sandbox.expiresAt} />
      </td>
    </tr>
  );
}

function matches(sandbox: SandboxNow, text: string): boolean {
  return [sandbox.id, sandbox.owner, sandbox.template, sandbox.runtime, sandbox.state, sandbox.running ?? ""].some(
    (field) => field.toLowerCase().includes(text),
  );
}
