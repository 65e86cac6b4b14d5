import type { JSX } from "preact";
import { useAction } from "../server/use-action.ts";
import { Problem } from "./problem.tsx";

interface ActionButtonProps {
  readonly label: string;
  readonly work: () => Promise<unknown>;
  readonly class?: string;
}

export function ActionButton(props: ActionButtonProps): JSX.Element {
  const action = useAction(props.work);
  return (
    <>
      <button type="button" class={props.class} disabled={action.isBusy} onClick={action.run}>
        {props.label}
      </button>
      <Problem error={action.error} />
    </>
  );
}
