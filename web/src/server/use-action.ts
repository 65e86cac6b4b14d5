import { useState } from "preact/hooks";

export interface Action {
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly run: () => void;
}

/** A button's work: one at a time, and its failure is shown where the button is. */
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
