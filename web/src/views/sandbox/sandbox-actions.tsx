import type { JSX } from "preact";
import type { ExtendRequest, SandboxDetail } from "../../../../src/operator/contract.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { announce } from "../../parts/announcer.tsx";
import { ConfirmButton } from "../../parts/confirm-button.tsx";
import { href, navigate } from "../../routing/router.ts";
import { post } from "../../server/api.ts";

const EXTEND_MINUTES = 30;

interface SandboxActionsProps {
  readonly sandbox: SandboxDetail;
  readonly onChange: () => void;
}

export function SandboxActions({ sandbox, onChange }: SandboxActionsProps): JSX.Element {
  const path = `sandboxes/${encodeURIComponent(sandbox.id)}`;
  const { can } = sandbox;
  const done = (words: string): void => {
    announce(words);
    onChange();
  };
  return (
    <>
      {can.includes("extend") ? (
        <ActionButton
          label={`Extend by ${EXTEND_MINUTES} min`}
          work={async () => {
            const request: ExtendRequest = { minutes: EXTEND_MINUTES };
            await post(`${path}/extend`, request);
            done("The sandbox lives longer.");
          }}
        />
      ) : null}
      {can.includes("stop") ? (
        <ConfirmButton
          label="Stop"
          question="Stop this sandbox?"
          explanation="Its processes end and its files are gone. The client's next call starts a new, empty one under the same id."
          work={async () => {
            await post(`${path}/stop`);
            announce("The sandbox was stopped.");
          }}
        />
      ) : null}
      {can.includes("destroy") ? (
        <ConfirmButton
          label="Destroy"
          question="Destroy this sandbox?"
          explanation="Its processes end, its files are gone, and the client cannot use it again. This cannot be taken back."
          work={async () => {
            await post(`${path}/destroy`);
            announce("The sandbox was destroyed.");
            navigate(href([]));
          }}
        />
      ) : null}
    </>
  );
}
