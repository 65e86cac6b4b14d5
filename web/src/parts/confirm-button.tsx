import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useAction } from "../server/use-action.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./problem.tsx";

interface ConfirmButtonProps {
  readonly label: string;
  readonly question: string;
  readonly explanation: string;
  readonly work: () => Promise<unknown>;
  readonly class?: string;
}

/** For destructive actions: explains the effect and asks once. */
export function ConfirmButton(props: ConfirmButtonProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const action = useAction(async () => {
    await props.work();
    setOpen(false);
  });
  return (
    <>
      <button type="button" class={props.class ?? "danger"} onClick={() => setOpen(true)}>
        {props.label}
      </button>
      {isOpen ? (
        <Dialog title={props.question} onClose={() => setOpen(false)}>
          <p>{props.explanation}</p>
          <Problem error={action.error} />
          <div class="actions end">
            <button type="button" onClick={() => setOpen(false)}>
              Cancel
            </button>
            <button type="button" class="danger solid" disabled={action.isBusy} onClick={action.run}>
              {props.label}
            </button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}
