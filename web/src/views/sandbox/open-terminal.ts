import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import { effect } from "@preact/signals";
import { theme } from "../../shell/theme.ts";
import { installStrictStyles } from "./strict-styles.ts";

/**
 * Sequences by which what is printed could do more than print: titles, colours of the page's own choice, links, notifications,
 * the clipboard. All of them are swallowed.
 */
const FORBIDDEN_OSC = [
  0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13, 17, 19, 50, 52, 99, 104, 110, 111, 112, 133, 633, 777, 1337,
];

const SCROLLBACK_LINES = 5_000;

export interface OpenedTerminal {
  readonly terminal: Terminal;
  readonly close: () => void;
}

export function openTerminal(place: HTMLElement, { isReadOnly }: { readonly isReadOnly: boolean }): OpenedTerminal {
  installStrictStyles();
  const terminal = new Terminal({
    convertEol: isReadOnly,
    disableStdin: isReadOnly,
    // What only shows has a plain text beside it; a shell reads out what it answers.
    screenReaderMode: !isReadOnly,
    cursorBlink: !isReadOnly,
    cursorInactiveStyle: isReadOnly ? "none" : "outline",
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    fontSize: 13,
    scrollback: SCROLLBACK_LINES,
    linkHandler: null,
    windowOptions: {},
    minimumContrastRatio: 4.5,
  });
  // It takes every Tab, also where it takes no input: whoever has only keys would never get out again.
  terminal.attachCustomKeyEventHandler(({ key, shiftKey }) => key !== "Tab" || !(isReadOnly || shiftKey));
  for (const code of FORBIDDEN_OSC) terminal.parser.registerOscHandler(code, () => true);
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const watcher = new ResizeObserver(() => fit.fit());
  watcher.observe(place);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = (): void => {
    terminal.options.theme = themeOf(place);
  };
  dark.addEventListener("change", paint);
  const stopTheme = effect(() => {
    void theme.value;
    // The attribute that the style sheet looks at is set by another effect of the same change.
    queueMicrotask(paint);
  });
  const close = (): void => {
    stopTheme();
    dark.removeEventListener("change", paint);
    watcher.disconnect();
    terminal.dispose();
  };
  return { terminal, close };
}

function themeOf(place: HTMLElement): ITheme {
  return {
    background: colorOf(place, "--terminal"),
    foreground: colorOf(place, "--text"),
    cursor: colorOf(place, "--accent"),
    selectionBackground: colorOf(place, "--selection"),
  };
}

/** The name stands for two colours: which of them is known where it is used. */
function colorOf(place: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
