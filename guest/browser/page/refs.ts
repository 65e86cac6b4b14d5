import type { Sighting } from "../page-report.ts";
import { describeElement } from "./describe.ts";
import { GeneratedText } from "./generated-text.ts";
import { quote } from "./marks.ts";
import { accessibleName } from "./names.ts";
import { standingRole } from "./roles.ts";

/** Their content is user input and not a name. */
const FILLED = new Set(["textbox", "searchbox", "combobox", "listbox", "slider", "spinbutton"]);
export const FRAMES: ReadonlySet<string> = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED"]);
const SAID = ["aria-label", "aria-labelledby", "alt", "title", "value", "placeholder"];

interface Known {
  readonly element: WeakRef<Element>;
  /** Role and name in the last snapshot with this element, and their source. */
  identity: string;
  generated: GeneratedText;
}

/** The refs of elements. An element keeps its number as long as its page exists. */
export class Refs {
  readonly #known = new Map<number, Known>();
  readonly #numbers = new WeakMap<Element, number>();
  #next = 1;

  /** Smaller numbers belong to other frames of the page or to earlier pages. */
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

  /** `undefined` when it is no longer in the page. */
  find(number: number): Element | undefined {
    const element = this.#known.get(number)?.element.deref();
    return element?.isConnected === true ? element : undefined;
  }

  /** How it differs from the last snapshot. */
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
  /** Role and name as in a snapshot. */
  readonly title: string;
}

export function titled(element: Element, role: string, generated: GeneratedText): Titled {
  return { role, title: join(role, accessibleName(element, generated)) };
}

/** Role and name, which identify an element. */
function identityOf(element: Element, { role, title }: Titled, generated: GeneratedText): string {
  return FILLED.has(role) ? join(role, accessibleName(element, generated, { isFilled: true })) : title;
}

function join(role: string, name: string): string {
  return name === "" ? role : `${role} ${quote(name)}`;
}

function roleOf(element: Element): string {
  return FRAMES.has(element.tagName) ? "frame" : (standingRole(element) ?? "clickable");
}

/** All sources of a name, visible or not: unlike the name, they do not change when the pointer moves. */
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
