import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LedgerVerification } from "../../../../src/operator/contract.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { countOf, visibleText } from "../../parts/format.ts";
import { Problem } from "../../parts/problem.tsx";
import { post } from "../../server/api.ts";
import { useAction } from "../../server/use-action.ts";

/** Verifies the whole hash chain. */
export function VerifyButton(): JSX.Element {
  const [result, setResult] = useState<LedgerVerification | undefined>(undefined);
  const [isOpen, setOpen] = useState(false);
  const action = useAction(async () => {
    setResult(undefined);
    setResult(await post<LedgerVerification>("ledger/verify"));
  });
  return (
    <>
      <button
        type="button"
        disabled={action.isBusy}
        onClick={() => {
          setOpen(true);
          action.run();
        }}
      >
        Verify
      </button>
      {isOpen ? (
        <Dialog title="Is the ledger whole?" onClose={() => setOpen(false)}>
          <Problem error={action.error} />
          <div role="status">
            {action.isBusy ? <p>Checking every row against the one before it…</p> : null}
            {result === undefined ? null : <Verdict result={result} />}
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

function Verdict({ result }: { readonly result: LedgerVerification }): JSX.Element {
  return result.ok ? (
    <p class="note good">
      <strong>Yes.</strong> {`All ${countOf(result.rows)} rows hold together: none was changed, taken out or put in.`}
    </p>
  ) : (
    <p class="note bad">
      <strong>No.</strong> {visibleText(result.problem ?? `The chain breaks after ${countOf(result.rows)} rows.`)}
    </p>
  );
}
