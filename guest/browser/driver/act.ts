import type { GuestParams, GuestResult } from "../../../contract/guest.ts";
import { closeSync } from "node:fs";
import { Failure } from "../../failure.ts";
import { explainAction } from "./action-failure.ts";
import { guarded, type Located, locate } from "./locate.ts";
import { settle, refuseSickPage } from "./within.ts";
import type { BrowserSession } from "./session.ts";

const TARGET_MAX = 300;

interface ActOptions {
  readonly selector: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Finds an element, acts on it, and waits for the effects. `use` may return the description of the element at that time. */
async function act(
  session: BrowserSession,
  { selector, timeoutMs, signal }: ActOptions,
  use: (located: Located, options: { readonly timeout: number; readonly signal: AbortSignal }) => Promise<unknown>,
): Promise<GuestResult<"browser.click">> {
  let target: string;
  try {
    const located = await locate(session, selector);
    const used = await use(located, { timeout: timeoutMs, signal });
    target = (typeof used === "string" ? used : located.label).slice(0, TARGET_MAX);
  } catch (error) {
    await refuseSickPage(session, error);
    throw explainAction(error, { selector, timeoutMs });
  }
  await settle(session, signal);
  return { ...(await session.describe()), target };
}

export async function click(
  session: BrowserSession,
  params: GuestParams["browser.click"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  const { button, clickCount, acceptDialogs } = params;
  session.acceptsDialogs = acceptDialogs;
  try {
    const use = async (located: Located, options: object): Promise<string | undefined> => {
      const { locator } = located;
      if (await clickArea(locator, options)) return undefined;
      return await guarded(located, params.selector, () => locator.click({ ...options, button, clickCount }));
    };
    return await session.acting(async () => await act(session, { ...params, signal }, use));
  } finally {
    session.acceptsDialogs = false;
  }
}

/** An area of an image map has no box, so a pointer cannot reach it: it is clicked by script. Returns whether it is an area. */
async function clickArea(locator: Located["locator"], options: object): Promise<boolean> {
  return await locator.evaluate(
    (element: { readonly localName: string; click(): void }) => {
      if (element.localName !== "area") return false;
      element.click();
      return true;
    },
    undefined,
    options,
  );
}

export async function type(
  session: BrowserSession,
  params: GuestParams["browser.type"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  const { text, clear, submit } = params;
  const typing = async (): Promise<GuestResult<"browser.click">> =>
    await act(session, { ...params, signal }, async (located, options) => {
      await (clear ? fill : append)(located, text, options);
      if (submit) await located.locator.press("Enter", options);
    });
  return submit ? await session.acting(typing) : await typing();
}

export async function hover(
  session: BrowserSession,
  params: GuestParams["browser.hover"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  return await act(session, { ...params, signal }, async ({ locator }, options) => await locator.hover(options));
}

export async function select(
  session: BrowserSession,
  params: GuestParams["browser.select"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  return await act(session, { ...params, signal }, async ({ locator }, options) => {
    await locator.selectOption([...params.values], options);
  });
}

export async function upload(
  session: BrowserSession,
  params: GuestParams["browser.upload"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  const paths = params.paths.map((path) => {
    const { workspace } = session;
    const absolute = workspace.resolve(path);
    // Reports a bad path with the error of the file tools.
    closeSync(workspace.openFile(path).fd);
    return absolute;
  });
  return await act(session, { ...params, signal }, async ({ locator }, options) => {
    await locator.setInputFiles(paths, options);
  });
}

export async function press(
  session: BrowserSession,
  params: GuestParams["browser.press"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  return await session.acting(async () => await pressed(session, params, signal));
}

async function pressed(
  session: BrowserSession,
  params: GuestParams["browser.press"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  const { key, selector, timeoutMs } = params;
  try {
    if (selector === undefined) await (await session.page()).keyboard.press(key);
    else await (await locate(session, selector)).locator.press(key, { timeout: timeoutMs, signal });
  } catch (error) {
    if (error instanceof Error && error.message.includes("Unknown key")) {
      throw new Failure(
        "bad_key",
        `there is no key ${key}`,
        "use names such as Enter, Escape, Tab, ArrowDown, Control+A, or one character",
      );
    }
    await refuseSickPage(session, error);
    throw explainAction(error, { selector: selector ?? key, timeoutMs });
  }
  await settle(session, signal);
  return await session.describe();
}

interface Patience {
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Hints for fields that accept only certain texts. */
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

/** Replaces the content of a field. */
async function fill({ locator }: Located, text: string, patience: Patience): Promise<void> {
  const value = text.trim();
  const taken = await locator.evaluate(tryOut, { value, types: Object.keys(FORMATS) }, patience);
  if (value !== "" && taken !== undefined && !isTaken(taken, value)) {
    const hint = `write it as in ${FORMATS[taken.type]}`;
    throw new Failure("bad_value", `the field takes no such text: it is of type ${taken.type}`, hint);
  }
  await locator.fill(text, patience);
}

/** Appends to the content of a field. */
async function append(located: Located, text: string, patience: Patience): Promise<void> {
  const { locator, page } = located;
  // Some fields move the cursor when they get the focus.
  await locator.focus(patience);
  const before = await locator.inputValue(patience).catch((error: unknown) => {
    if (error instanceof Error && error.message.includes("Node is not an <input>")) return undefined;
    throw error;
  });
  if (before !== undefined) return await fill(located, before + text, patience);
  // The rest is rich text, which would lose its format if it were filled.
  if (!(await locator.isEditable(patience))) {
    const hint = "choose another field, or do first what makes it editable";
    throw new Failure("element_disabled", "the field is read-only", hint);
  }
  await locator.selectText(patience);
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText(text);
}

/** The properties of a field or its label that are used here. */
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

/** Runs in the page. Browsers silently empty or correct the value of a field: a copy of the field shows that without changing it. */
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
