import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Activity } from "../../../../src/operator/activity-log.ts";
import { fromAnswer } from "../../server/answer-text.ts";
import { useStream } from "../../server/use-stream.ts";
import { OperatorShell } from "./operator-shell.tsx";
import { OutputText, plainLines } from "./output-text.ts";
import { PatientScreen } from "./patient-screen.ts";
import { TerminalScreen } from "./terminal-screen.tsx";
import { isLast, pathOf, type ShownSandbox } from "./shown-sandbox.ts";

const PRINTED = ["shell", "code", "file", "browser", "state"];

/** The live output of shell and code calls, and a shell of the operator beside it. */
export function TerminalTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const [isPlain, setPlain] = useState(false);
  const [output] = useState(() => new PatientScreen());
  const [shell] = useState(() => new PatientScreen());
  const [words] = useState(() => new OutputText());
  const newest = useRef(-1);
  const show = (entry: Activity): void => {
    // After a reconnect the server replays entries that were already shown.
    if (entry.seq <= newest.current) return;
    newest.current = entry.seq;
    if (entry.kind === "terminal") shell.write(entry.text ?? "");
    else if (PRINTED.includes(entry.kind)) output.write(words.next(entry));
  };
  useStream(pathOf(sandbox, "activity"), {
    activity: (data) => {
      const entry = fromAnswer<Activity>(data);
      show(entry);
      return isLast(entry) ? "end" : undefined;
    },
  });
  return (
    <div class="terminals">
      <section aria-labelledby="output-title">
        <header class="section-head">
          <h2 id="output-title">Output</h2>
          <label class="check">
            <input type="checkbox" checked={isPlain} onChange={(event) => setPlain(event.currentTarget.checked)} />
            <span>Plain text</span>
          </label>
        </header>
        {isPlain ? (
          <PlainOutput screen={output} />
        ) : (
          <TerminalScreen label="Output of shell and code" onReady={(handle) => output.show(handle)} />
        )}
      </section>
      {sandbox.isAlive && sandbox.can.includes("takeover") ? (
        <OperatorShell sandbox={sandbox} onReady={(handle) => shell.show(handle)} />
      ) : null}
    </div>
  );
}

function PlainOutput({ screen }: { readonly screen: PatientScreen }): JSX.Element {
  return (
    <pre class="code terminal-text" tabIndex={0} role="log" aria-live="off" aria-label="Output as text">
      {plainLines(screen.text.value).map(({ text, isOwn }) => (isOwn ? <strong>{`${text}\n`}</strong> : `${text}\n`))}
    </pre>
  );
}
