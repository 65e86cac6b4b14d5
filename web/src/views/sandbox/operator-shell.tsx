import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SandboxDetail, TerminalRequest } from "../../../../src/operator/contract.ts";
import { visibleText } from "../../parts/format.ts";
import { Empty, Problem } from "../../parts/problem.tsx";
import { post } from "../../server/api.ts";
import { GiveBackButton, isMine, TakeOverButton } from "./take-over.tsx";
import { type ScreenHandle, TerminalScreen } from "./terminal-screen.tsx";

interface OperatorShellProps {
  readonly sandbox: SandboxDetail;
  readonly onReady: (screen: ScreenHandle | undefined) => void;
}

/**
 * While it is open, the client's calls are refused. Everything typed is recorded in the ledger as an act of the
 * operator.
 */
export function OperatorShell({ sandbox, onReady }: OperatorShellProps): JSX.Element {
  const isOpen = isMine(sandbox);
  return (
    <section aria-labelledby="shell-title">
      <header class="section-head">
        <h2 id="shell-title">Your shell</h2>
        {isOpen ? <GiveBackButton sandbox={sandbox} /> : null}
      </header>
      {isOpen ? (
        <Shell path={`sandboxes/${encodeURIComponent(sandbox.id)}`} onReady={onReady} />
      ) : sandbox.takenOverBy === undefined ? (
        <div class="empty">
          <p class="empty-title">Take the sandbox over to type in it.</p>
          <p>Until you give it back, the client's calls are answered that an operator is at work.</p>
          <TakeOverButton sandbox={sandbox} />
        </div>
      ) : (
        <Empty title={`${visibleText(sandbox.takenOverBy)} has taken it over.`} />
      )}
    </section>
  );
}

function Shell({
  path,
  onReady,
}: {
  readonly path: string;
  readonly onReady: OperatorShellProps["onReady"];
}): JSX.Element {
  const [error, setError] = useState<unknown>(undefined);
  /** Sends one request at a time, so that input arrives in order. Input in the meantime is merged. */
  const [queue] = useState(() => new InputQueue(path, setError));
  return (
    <>
      <Problem error={error} />
      <p class="muted">What you type goes to the shell. Leave it with Shift+Tab.</p>
      <TerminalScreen
        label="Your shell in the sandbox"
        onReady={onReady}
        onInput={(input) => queue.type(input)}
        onResize={(resize) => queue.send({ resize })}
      />
    </>
  );
}

class InputQueue {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  #typed = "";
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path;
    this.#onError = onError;
  }

  type(input: string): void {
    const isWaiting = this.#typed !== "";
    this.#typed += input;
    if (isWaiting) return;
    this.#last = this.#last.then(async () => {
      const text = this.#typed;
      this.#typed = "";
      await this.#post({ input: text });
    });
  }

  send(request: TerminalRequest): void {
    this.#last = this.#last.then(() => this.#post(request));
  }

  async #post(request: TerminalRequest): Promise<void> {
    await post(`${this.#path}/terminal`, request).then(() => this.#onError(undefined), this.#onError);
  }
}
