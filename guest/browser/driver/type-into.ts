import { Failure } from "../../failure.ts";
import type { Located } from "./locate.ts";

interface Patience {
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** How fields that do not take every text want it. */
const FORMATS: Readonly<Record<string, string>> = {
  color: "#ff8800",
  date: "2026-03-28",
  "datetime-local": "2026-03-28T09:30",
  month: "2026-03",
  number: "12.5",
  range: "12.5, within what it goes from and to (0 and 100, unless the page says otherwise)",
  time: "09:30",
  week: "2026-W13",
};

/** In place of what is in the field. */
export async function fill({ locator }: Located, text: string, patience: Patience): Promise<void> {
  const value = text.trim();
  const taken = await locator.evaluate(tryOut, { value, types: Object.keys(FORMATS) }, patience);
  if (value !== "" && taken !== undefined && !isTaken(taken, value)) {
    const hint = `write it as in ${FORMATS[taken.type]}`;
    throw new Failure("bad_value", `the field takes no such text: it is of type ${taken.type}`, hint);
  }
  await locator.fill(text, patience);
}

/** After all that is in the field. */
export async function append(located: Located, text: string, patience: Patience): Promise<void> {
  const { locator, page } = located;
  // Some fields move the cursor when they are entered, and with it what is to be replaced.
  await locator.focus(patience);
  const before = await locator.inputValue(patience).catch((error: unknown) => {
    if (error instanceof Error && error.message.includes("Node is not an <input>")) return undefined;
    throw error;
  });
  if (before !== undefined) return await fill(located, before + text, patience);
  // What is left is rich text, which would lose its form if it were filled anew.
  if (!(await locator.isEditable(patience))) {
    const hint = "choose another field, or do first what makes it editable";
    throw new Failure("element_disabled", "the field is read-only", hint);
  }
  await locator.selectText(patience);
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText(text);
}

/** What the page has for a field or its label, as far as it matters here. */
interface Field {
  readonly control?: Field | null;
  readonly type?: string;
  value: string;
  cloneNode: () => Field;
}

interface Taken {
  readonly type: string;
  readonly value: string;
}

/** Runs in the page. Browsers empty or correct a field in silence: a copy of it shows that while the field keeps what it has. */
function tryOut(node: Field, { value, types }: { value: string; types: string[] }): Taken | undefined {
  const field = node.control ?? node;
  const { type } = field;
  if (type === undefined || !types.includes(type)) return undefined;
  const copy = field.cloneNode();
  copy.value = value;
  return { type, value: copy.value };
}

function isTaken({ type, value }: Taken, wanted: string): boolean {
  if (type === "color") return value === wanted.toLowerCase();
  return type === "range" ? Number(value) === Number(wanted) : value !== "";
}
