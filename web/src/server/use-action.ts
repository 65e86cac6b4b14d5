import { useState } from "preact/hooks";

export interface Action {
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly run: () => void;
}

/** The action of a button: it runs once at a time, and its error is shown beside the button. */
export function useAction(work: () => Promise<unknown>): Action {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const run = (): void => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    work()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return { isBusy, error, run };
}
