import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** The dialog element of the browser: it traps the focus and restores it, and Escape closes it. */
export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Opened before the first paint, so that keys typed at once go to the dialog.
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={box} aria-labelledby={titleId} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}
