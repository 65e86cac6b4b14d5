import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PauseRequest } from "../../../src/operator/contract-policy.ts";
import { announce } from "../parts/announcer.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { visibleText } from "../parts/format.ts";
import { Problem } from "../parts/problem.tsx";
import { post } from "../server/api.ts";
import { useAction } from "../server/use-action.ts";
import { Form } from "../parts/form.tsx";

/** The client that the open dialog would pause; `*` for all clients. */
const asked = signal<string | undefined>(undefined);

export function askToPause(client: string): void {
  asked.value = client;
}

export function PauseDialogSlot(): JSX.Element | null {
  return asked.value === undefined ? null : <PauseDialog client={asked.value} />;
}

function PauseDialog({ client }: { readonly client: string }): JSX.Element {
  const [reason, setReason] = useState("");
  const [cancel, setCancel] = useState(true);
  const close = (): void => {
    asked.value = undefined;
  };
  const isEverybody = client === "*";
  const action = useAction(async () => {
    const request: PauseRequest = { ...(isEverybody ? {} : { client }), reason, cancel };
    await post("pause", request);
    announce(isEverybody ? "All clients are paused." : `${visibleText(client)} is paused.`);
    close();
  });
  return (
    <Dialog title={isEverybody ? "Pause all clients?" : `Pause ${visibleText(client)}?`} onClose={close}>
      <Form onSubmit={action.run}>
        <p>Every call is refused at once until somebody resumes, after a restart too. It stands in the ledger.</p>
        <label class="field">
          <span>Why? The client is told.</span>
          <input
            name="reason"
            value={reason}
            required
            autofocus
            maxLength={300}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={cancel} onChange={(event) => setCancel(event.currentTarget.checked)} />
          <span>End calls that run already</span>
        </label>
        <p class="muted">
          Programs in the background of a sandbox go on, whatever you choose: stop the sandbox to end them.
        </p>
        <Problem error={action.error} />
        <div class="actions end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="danger solid" disabled={action.isBusy}>
            {isEverybody ? "Pause all" : "Pause"}
          </button>
        </div>
      </Form>
    </Dialog>
  );
}
