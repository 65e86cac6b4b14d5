import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { href, navigate } from "../routing/router.ts";
import { askToPause } from "./pause-dialog.tsx";
import { SECTIONS } from "./sections.ts";

const KEY = "owlclaw-shortcuts";
const isHelpOpen = signal(false);
/** Single-key shortcuts conflict with speech input, so they can be switched off. */
const isOn = signal(localStorage.getItem(KEY) !== "off");

export function openHelp(): void {
  isHelpOpen.value = true;
}

export function useShortcuts(): void {
  useEffect(() => {
    /** Whether `g` was pressed and the key of a section may follow. */
    let isWaiting = false;
    const listen = (event: KeyboardEvent): void => {
      if (!isOn.peek() || isTyping(event)) return;
      if (isWaiting) {
        isWaiting = false;
        const section = SECTIONS.find(({ key }) => key === event.key);
        if (section !== undefined) navigate(href(section.path === "" ? [] : [section.path]));
      } else if (event.key === "g") isWaiting = true;
      else if (event.key === "?") openHelp();
      else if (event.key === "P") askToPause("*");
      else if (event.key === "/") focusFilter(event);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}

function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return true;
  const { target } = event;
  // An event that another element has handled is not a shortcut: keys may go to the sandbox's browser or to a shell.
  if (event.defaultPrevented || !(target instanceof HTMLElement)) return event.defaultPrevented;
  return target.isContentEditable || target.closest("input, textarea, select, [role=application]") !== null;
}

function focusFilter(event: KeyboardEvent): void {
  const field = document.querySelector("[data-filter]");
  if (!(field instanceof HTMLElement)) return;
  event.preventDefault();
  field.focus();
}

export function HelpSlot(): JSX.Element | null {
  if (!isHelpOpen.value) return null;
  const close = (): void => {
    isHelpOpen.value = false;
  };
  const keys: readonly (readonly [string, string])[] = [
    ...SECTIONS.map(({ key, title }) => [`g ${key}`, title] as const),
    ["/", "Search or filter on this page"],
    ["Shift+P", "Pause all clients"],
    ["?", "This help"],
    ["Esc", "Close a dialog"],
  ];
  return (
    <Dialog title="Keyboard" onClose={close}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={isOn.value}
          onChange={(event) => {
            isOn.value = event.currentTarget.checked;
            localStorage.setItem(KEY, isOn.value ? "on" : "off");
          }}
        />
        <span>Shortcuts of one key are on</span>
      </label>
    </Dialog>
  );
}
