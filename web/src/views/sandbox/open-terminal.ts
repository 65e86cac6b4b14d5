import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import { effect } from "@preact/signals";
import { theme } from "../../shell/theme.ts";
import { installStrictStyles } from "./strict-styles.ts";

/**
 * OSC sequences that could do more than print: titles, custom colours, links, notifications, the clipboard. All of them
 * are ignored.
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
    // A read-only screen has a plain text beside it for screen readers. A shell needs its output read out.
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
  // xterm.js takes every Tab, even when it takes no input: keyboard users could not leave it.
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
    // Another effect of the same change sets the attribute that the style sheet uses.
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

/** The variable has a light and a dark value. An element in the page resolves it. */
function colorOf(place: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
