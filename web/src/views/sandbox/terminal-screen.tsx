import type { Terminal } from "@xterm/xterm";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../../parts/problem.tsx";

export interface ScreenHandle {
  readonly write: (text: string) => void;
}

interface TerminalScreenProps {
  readonly label: string;
  /** Receives the screen when it is ready, and undefined when it is closed. */
  readonly onReady: (screen: ScreenHandle | undefined) => void;
  /** Absent: the screen is read-only. */
  readonly onInput?: (text: string) => void;
  readonly onResize?: (size: { readonly cols: number; readonly rows: number }) => void;
}

/** A terminal. xterm.js is loaded when the first one is shown. */
export function TerminalScreen(props: TerminalScreenProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    let close: (() => void) | undefined;
    let isLeft = false;
    const start = async (): Promise<void> => {
      const { openTerminal } = await import("./open-terminal.ts");
      if (isLeft || place.current === null) return;
      const opened = openTerminal(place.current, { isReadOnly: props.onInput === undefined });
      close = opened.close;
      connect(opened.terminal, props);
    };
    start().catch(setError);
    return () => {
      isLeft = true;
      props.onReady(undefined);
      close?.();
    };
  }, []);
  return (
    <>
      <Problem error={error} />
      <div class="screen" role="group" aria-label={props.label} ref={place} />
    </>
  );
}

function connect(terminal: Terminal, { onInput, onResize, onReady }: TerminalScreenProps): void {
  if (onInput !== undefined) terminal.onData(onInput);
  if (onResize !== undefined) {
    terminal.onResize(onResize);
    onResize({ cols: terminal.cols, rows: terminal.rows });
  }
  onReady({ write: (text) => terminal.write(text) });
}
