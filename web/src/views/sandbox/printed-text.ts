const ESCAPE = "\u001b";
/**
 * Matches a colour or a style; any other escape sequence; any other control character except tab, line feed, backspace
 * and carriage return.
 */
const SIGNS =
  /\u001b\[([0-9;:]*)m|\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])|[\u0000-\u0007\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const UNFINISHED = /\u001b(?:\[[0-?]*[ -/]*|[\]PX^_][^\u0007\u001b\u009c]*\u001b?|[ -/]*)$/;
/** The limit for an escape sequence that has not ended. A longer one is treated as text. */
const MOST_HELD_CHARS = 4096;
const COLOR = /^(?:38|58)(?::5:\d+|:2:\d*:\d+:\d+:\d+|:2:\d+:\d+:\d+)$/;

/**
 * Printed text with its colours. All other escape sequences are removed, such as cursor moves, screen switches and
 * titles. Backgrounds are removed too, because they mark lines that the page itself adds.
 */
export class PrintedText {
  #held = "";

  next(piece: string): string {
    const text = this.#held + piece;
    const [unfinished = ""] = UNFINISHED.exec(text) ?? [];
    this.#held = unfinished.length > MOST_HELD_CHARS ? "" : unfinished;
    const whole = text.slice(0, text.length - this.#held.length);
    return whole.replaceAll(SIGNS, (_, style: string | undefined) => (style === undefined ? "" : styleOf(style)));
  }
}

/** Handles each part separately, so that no two parts combine. */
function styleOf(style: string): string {
  const numbers = style.split(";");
  const kept: string[] = [];
  while (numbers.length > 0) {
    const part = takePart(numbers);
    // Terminals interpret an invalid colour in different ways, so the rest is dropped.
    if (part === undefined) break;
    if (!isBackground(part)) kept.push(`${ESCAPE}[${part}m`);
  }
  return kept.join("");
}

function takePart(numbers: string[]): string | undefined {
  const [first = "", kind = ""] = numbers;
  if (first.includes(":")) return COLOR.test(numbers.shift() ?? "") || /^4:\d$/.test(first) ? first : undefined;
  if (!["38", "48", "58"].includes(first)) return numbers.shift();
  const length = { "5": 3, "2": 5 }[kind];
  const part = length === undefined ? [] : numbers.splice(0, length);
  return part.length === length && part.every((number) => number !== "" && !number.includes(":"))
    ? part.join(";")
    : undefined;
}

function isBackground(part: string): boolean {
  const number = Number.parseInt(part, 10);
  return number === 7 || (number >= 40 && number <= 49) || (number >= 100 && number <= 107);
}
