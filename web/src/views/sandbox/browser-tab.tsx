import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { BrowserInput, BrowserPicture } from "../../../../src/operator/contract-files.ts";
import { visibleText } from "../../parts/format.ts";
import { Empty, Problem } from "../../parts/problem.tsx";
import { fromAnswer } from "../../server/answer-text.ts";
import { useStream } from "../../server/use-stream.ts";
import { BrowserInputs } from "./browser-inputs.ts";
import { GiveBackButton, isMine, TakeOverButton } from "./take-over.tsx";
import type { ShownSandbox } from "./shown-sandbox.ts";

const KEYS = [
  "Enter",
  "Tab",
  "Escape",
  "Backspace",
  "Delete",
  "ArrowUp",
  "ArrowDown",
  "ArrowLeft",
  "ArrowRight",
  "Home",
  "End",
  "PageUp",
  "PageDown",
];

/** Screenshots of the sandbox's browser. An operator who has taken the sandbox over can click and type. */
export function BrowserTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const path = `sandboxes/${encodeURIComponent(sandbox.id)}/browser`;
  const [picture, setPicture] = useState<BrowserPicture | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  useStream(path, {
    picture: (data) => setPicture(fromAnswer<BrowserPicture>(data)),
    none: () => setPicture(undefined),
  });
  const [inputs] = useState(() => new BrowserInputs(`${path}/input`, setError));
  const send = (input: BrowserInput): void => inputs.send(input);
  const isOpen = isMine(sandbox);
  if (picture === undefined)
    return <Empty title="No page is open.">The picture appears as soon as the client opens one.</Empty>;
  return (
    <section class="browser" aria-labelledby="browser-title">
      <header class="section-head">
        <h2 id="browser-title">{picture.title === "" ? "Untitled page" : visibleText(picture.title)}</h2>
        <span class="mono muted address">{visibleText(picture.url)}</span>
      </header>
      <Problem error={error} />
      <BrowserHint sandbox={sandbox} />
      <Screen picture={picture} {...(isOpen ? { send } : {})} />
      {isOpen ? <TypeForm send={send} /> : null}
    </section>
  );
}

function BrowserHint({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  if (isMine(sandbox)) {
    return (
      <div class="section-head">
        <p class="muted">Click into the picture; what you type goes to the page. Leave it with Shift+Tab.</p>
        <GiveBackButton sandbox={sandbox} />
      </div>
    );
  }
  if (sandbox.takenOverBy !== undefined)
    return <p class="muted">{`${visibleText(sandbox.takenOverBy)} has taken it over.`}</p>;
  return (
    <div class="section-head">
      <p class="muted">
        To click and type here, take the sandbox over: until you give it back, the client's calls are refused.
      </p>
      {sandbox.can.includes("takeover") ? <TakeOverButton sandbox={sandbox} /> : null}
    </div>
  );
}

function Screen({
  picture,
  send,
}: {
  readonly picture: BrowserPicture;
  readonly send?: (input: BrowserInput) => void;
}): JSX.Element {
  const image = (
    <img
      class="page-picture"
      src={`data:image/jpeg;base64,${picture.image}`}
      width={picture.width}
      height={picture.height}
      alt="What the browser shows now"
      draggable={false}
    />
  );
  if (send === undefined) return image;
  const at = (event: MouseEvent & { readonly currentTarget: HTMLElement }): { x: number; y: number } => {
    const box = event.currentTarget.getBoundingClientRect();
    const scale = picture.width / box.width;
    return { x: Math.round((event.clientX - box.left) * scale), y: Math.round((event.clientY - box.top) * scale) };
  };
  return (
    <div
      class="page-screen"
      role="application"
      aria-label="The browser's page: clicks and keys go to it"
      tabIndex={0}
      onClick={(event) => send({ click: at(event) })}
      onWheel={(event) => {
        event.preventDefault();
        send({ scroll: { ...at(event), dy: Math.round(event.deltaY) } });
      }}
      onKeyDown={(event) => {
        const input = inputOf(event);
        if (input === undefined) return;
        event.preventDefault();
        send(input);
      }}
    >
      {image}
    </div>
  );
}

function inputOf(event: KeyboardEvent): BrowserInput | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey || (event.key === "Tab" && event.shiftKey)) return undefined;
  if (KEYS.includes(event.key)) return { key: event.key };
  return event.key.length === 1 ? { type: event.key } : undefined;
}

function TypeForm({ send }: { readonly send: (input: BrowserInput) => void }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  return (
    <form
      class="inline-form"
      onSubmit={(event) => {
        event.preventDefault();
        const text = field.current?.value ?? "";
        if (text !== "") send({ type: text });
        if (field.current !== null) field.current.value = "";
      }}
    >
      <label class="field">
        <span>Type a text into the page</span>
        <input ref={field} autoComplete="off" />
      </label>
      <button type="submit">Type</button>
      <button type="button" onClick={() => send({ key: "Enter" })}>
        Press Enter
      </button>
    </form>
  );
}
