import type { JSX } from "preact";
import type { SandboxDetail } from "../../../../src/operator/contract.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { announce } from "../../parts/announcer.tsx";
import { post, session } from "../../server/api.ts";

/** Whether the operator of this session has taken the sandbox over. */
export function isMine({ takenOverBy }: SandboxDetail): boolean {
  const current = session.value;
  return typeof current === "object" && takenOverBy === current.operator;
}

export function TakeOverButton({ sandbox }: { readonly sandbox: SandboxDetail }): JSX.Element {
  const take = async (): Promise<void> => {
    await post(`sandboxes/${encodeURIComponent(sandbox.id)}/takeover`);
    announce("You have taken the sandbox over.");
  };
  return <ActionButton label="Take over" work={take} />;
}

export function GiveBackButton({ sandbox }: { readonly sandbox: SandboxDetail }): JSX.Element {
  const give = async (): Promise<void> => {
    await post(`sandboxes/${encodeURIComponent(sandbox.id)}/giveback`);
    announce("The sandbox is the client's again.");
  };
  return <ActionButton class="small" label="Give back" work={give} />;
}
