import type { Sighting } from "../page-report.ts";
import { describeElement } from "./describe.ts";
import { GeneratedText } from "./generated-text.ts";
import { quote } from "./marks.ts";
import { accessibleName } from "./names.ts";
import { standingRole } from "./roles.ts";

/** What is in them is put there by whoever uses them: it is no name. */
const FILLED = new Set(["textbox", "searchbox", "combobox", "listbox", "slider", "spinbutton"]);
export const FRAMES: ReadonlySet<string> = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED"]);
const SAID = ["aria-label", "aria-labelledby", "alt", "title", "value", "placeholder"];

interface Known {
  readonly element: WeakRef<Element>;
  /** Role and name in the last snapshot that showed it, and how they were found. */
  identity: string;
  generated: GeneratedText;
}

/** Elements and their numbers. An element keeps its number for as long as its page lives. */
export class Refs {
  readonly #known = new Map<number, Known>();
  readonly #numbers = new WeakMap<Element, number>();
  #next = 1;

  /** Numbers below were given in other frames of the page, or to pages before it. */
  startAt(next: number): void {
    this.#next = Math.max(this.#next, next);
  }

  get next(): number {
    return this.#next;
  }

  numberOf(element: Element, titled: Titled, { isAnywhere }: GeneratedText): number {
    const number = this.#numbers.get(element) ?? this.#next;
    if (number === this.#next) this.#next += 1;
    this.#numbers.set(element, number);
    const generated = isAnywhere ? GENERATED : NOT_GENERATED;
    this.#known.set(number, {
      element: this.#known.get(number)?.element ?? new WeakRef(element),
      identity: identityOf(element, titled, generated),
      generated,
    });
    return number;
  }

  /** Nothing when it is no longer part of the page. */
  find(number: number): Element | undefined {
    const element = this.#known.get(number)?.element.deref();
    return element?.isConnected === true ? element : undefined;
  }

  /** What has become of it since the last snapshot. */
  lookAt(number: number): Sighting | undefined {
    const element = this.find(number);
    const known = this.#known.get(number);
    if (element === undefined || known === undefined) return undefined;
    const now = titled(element, roleOf(element), known.generated);
    const is = identityOf(element, now, known.generated);
    return { was: known.identity, is, label: describeElement(element, now.title) };
  }
}

const GENERATED = new GeneratedText(true);
const NOT_GENERATED = new GeneratedText(false);

interface Titled {
  readonly role: string;
  /** Role and name, as a snapshot shows them. */
  readonly title: string;
}

export function titled(element: Element, role: string, generated: GeneratedText): Titled {
  return { role, title: join(role, accessibleName(element, generated)) };
}

/** Role and name, by which an element is known again. */
function identityOf(element: Element, { role, title }: Titled, generated: GeneratedText): string {
  return FILLED.has(role) ? join(role, accessibleName(element, generated, { isFilled: true })) : title;
}

function join(role: string, name: string): string {
  return name === "" ? role : `${role} ${quote(name)}`;
}

function roleOf(element: Element): string {
  return FRAMES.has(element.tagName) ? "frame" : (standingRole(element) ?? "clickable");
}

/** All that a name can be made of, whether it is shown or not: other than the name, it does not change with the pointer's place alone. */
export function spellingOf(element: Element): string {
  const named = element.getAttribute("aria-labelledby")?.split(/\s+/) ?? [];
  const labels = "labels" in element && element.labels instanceof NodeList ? [...element.labels] : [];
  const others = [...named.map((id) => document.getElementById(id)), ...labels].map(
    (other) => other?.textContent ?? "",
  );
  const inside = [element, ...element.querySelectorAll("*")];
  const attributes = inside.flatMap((one) => SAID.map((name) => one.getAttribute(name)));
  return JSON.stringify([roleOf(element), element.textContent, others, attributes]);
}
