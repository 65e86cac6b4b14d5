import { resolve } from "node:path";
import { readConfigText } from "../config/file-layer.ts";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { TrustedFiles } from "../config/trusted-files.ts";
import { userEnvironment } from "../config/environment.ts";
import { type Terminal, askYesOrNo } from "./terminal.ts";
import { type CommandCall, EXIT } from "./command.ts";
import { paint, withoutTerminalControls } from "./text.ts";

/**
 * Shows a configuration file, or its changes since it was trusted, and records that this user trusts exactly this
 * content.
 */
export async function trustCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const file = resolve(args[0] ?? CONFIG_FILE_NAME);
  const trusted = new TrustedFiles(userEnvironment().env);
  if (flags["remove"] === true) {
    terminal.err(trusted.remove(file) ? `${file} is no longer trusted.\n` : `${file} was not trusted.\n`);
    return EXIT.ok;
  }
  const text = readConfigText(file);
  if (trusted.read(file) === text) {
    terminal.err(`${file} is trusted already.\n`);
    return EXIT.ok;
  }
  if (flags["yes"] !== true && !process.stdin.isTTY) {
    showFile(terminal, { file, text, trustedText: trusted.read(file) });
    terminal.err("Nothing was recorded. Read it, then run the command on a terminal, or with --yes.\n");
    return EXIT.failure;
  }
  if (flags["yes"] === true) trusted.trust(file, text);
  else if (!(await askForTrust(terminal, { file, text, trustedText: trusted.read(file) }))) return EXIT.failure;
  terminal.err(`${file} is trusted as it is now. A changed file must be trusted again.\n`);
  return EXIT.ok;
}

export interface ShownFile {
  readonly file: string;
  readonly text: string;
  /** The content that was trusted before. */
  readonly trustedText: string | undefined;
}

/** Records the text that was shown, not the file: the file may change while the user reads. */
export async function askForTrust(terminal: Terminal, shown: ShownFile): Promise<boolean> {
  showFile(terminal, shown);
  const isTrusted = await askYesOrNo("It may start programs as you and lift every rule. Trust it?");
  if (isTrusted) new TrustedFiles(userEnvironment().env).trust(shown.file, shown.text);
  return isTrusted;
}

function showFile(terminal: Terminal, { file, text, trustedText }: ShownFile): void {
  const what = trustedText === undefined ? "was not trusted before" : "has changed since it was trusted";
  terminal.err(`${file} ${what}:\n\n${lineDiff(trustedText ?? "", text, terminal.errColor)}\n`);
}

const CONTEXT_LINES = 2;

/** Shows the changed lines between the common start and the common end of two texts, with a few lines of context. */
export function lineDiff(before: string, after: string, color: boolean): string {
  const [old, fresh] = [toLines(before), toLines(after)];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const shown = (lines: readonly string[], mark: string): string[] => lines.map((line) => `${mark} ${line}`);
  return [
    ...shown(old.slice(Math.max(0, head - CONTEXT_LINES), head), " "),
    ...shown(old.slice(head, old.length - tail), "-").map((line) => paint(line, "red", color)),
    ...shown(fresh.slice(head, fresh.length - tail), "+").map((line) => paint(line, "green", color)),
    ...shown(fresh.slice(fresh.length - tail, fresh.length - tail + CONTEXT_LINES), " "),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

function toLines(text: string): readonly string[] {
  const lines = withoutTerminalControls(text.replaceAll("\r\n", "\n")).split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
