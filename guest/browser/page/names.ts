import type { GeneratedText } from "./generated-text.ts";
import { withoutControls, saysEscaped } from "./marks.ts";

const NAME_MAX = 100;
const DEFAULT_BUTTONS: Readonly<Record<string, string>> = { submit: "Submit", button: "", reset: "Reset" };
/** Elements whose content is spoken differently than displayed, or not at all. */
const SAID_OTHERWISE = "img, svg, [aria-label], [aria-hidden=true], [title]";
/** Enough of a text to find it in a name. */
const START_CHARS = 40;
const TEXTS_MAX = 20;

export function squeeze(text: string): string {
  return withoutControls(text).trim();
}

export function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** The accessible name of an element. `isFilled`: its content is a value and not its name. */
export function accessibleName(element: Element, generated: GeneratedText, { isFilled = false } = {}): string {
  for (const source of [fromLabelledBy, fromAriaLabel, fromLabels, fromOwnText, fromAttributes]) {
    if (isFilled && source === fromOwnText) continue;
    const name = squeeze(source(element, generated));
    if (name !== "") return shorten(name, NAME_MAX);
  }
  return "";
}

function fromLabelledBy(element: Element, generated: GeneratedText): string {
  const ids = element.getAttribute("aria-labelledby")?.split(/\s+/) ?? [];
  const root = element.getRootNode();
  const scope = root instanceof ShadowRoot || root instanceof Document ? root : document;
  return ids
    .map((id) => scope.getElementById(id))
    .map((named) => (named === null ? "" : generated.around(named, named.textContent ?? "")))
    .join(" ");
}

function fromAriaLabel(element: Element): string {
  return element.getAttribute("aria-label") ?? "";
}

function fromLabels(element: Element, generated: GeneratedText): string {
  const isField =
    element instanceof HTMLInputElement ||
    element instanceof HTMLSelectElement ||
    element instanceof HTMLTextAreaElement;
  if (!isField || element.labels === null) return "";
  return [...element.labels].map((label) => generated.around(label, labelText(label))).join(" ");
}

/** A label around a field does not include the field's value. */
function labelText(label: HTMLLabelElement): string {
  if (label.querySelector("select, textarea, button") === null) return label.innerText;
  const texts = document.createTreeWalker(label, NodeFilter.SHOW_TEXT);
  const said: string[] = [];
  while (texts.nextNode() !== null) {
    const { currentNode } = texts;
    if (currentNode.parentElement?.closest("select, textarea, button") === null) said.push(currentNode.nodeValue ?? "");
  }
  return said.join(" ");
}

function fromOwnText(element: Element, generated: GeneratedText): string {
  if (element instanceof HTMLInputElement) {
    const unnamed = DEFAULT_BUTTONS[element.type];
    return unnamed === undefined ? "" : element.value || (element.hasAttribute("value") ? "" : unnamed);
  }
  if (element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement) return "";
  if (element.childElementCount === 0) return generated.around(element, element.textContent ?? "");
  const isPlain = element instanceof HTMLElement && element.querySelector(SAID_OTHERWISE) === null;
  return isPlain && !generated.isAnywhere ? element.innerText : spokenInside(element, generated);
}

function spokenInside(element: Element, generated: GeneratedText): string {
  return generated.around(element, [...element.childNodes].map((node) => spoken(node, generated)).join(""));
}

function spoken(node: Node, generated: GeneratedText): string {
  if (node instanceof Text) return node.data;
  if (!(node instanceof Element) || node.getAttribute("aria-hidden") === "true") return "";
  if (!node.checkVisibility({ visibilityProperty: true })) return "";
  const name = ownName(node);
  if (name !== "") return ` ${name} `;
  const inside = spokenInside(node, generated) || (node.getAttribute("title") ?? "");
  return getComputedStyle(node).display.startsWith("inline") ? inside : ` ${inside} `;
}

function ownName(element: Element): string {
  const label = fromAriaLabel(element);
  if (label.trim() !== "") return label;
  if (element instanceof SVGSVGElement) return element.querySelector(":scope > title")?.textContent ?? "";
  return element.getAttribute("alt") ?? "";
}

function fromAttributes(element: Element): string {
  const names = ["alt", "placeholder", "title", "name", "aria-placeholder"];
  return names.map((name) => element.getAttribute(name) ?? "").find((value) => value.trim() !== "") ?? "";
}

interface Words {
  isSeen: boolean;
  readonly hidden: string[];
}

/** The texts inside an interactive element: a name made of invisible text is marked. */
export class WidgetWords {
  readonly #open: Words[] = [];

  open(): void {
    this.#open.push({ isSeen: false, hidden: [] });
  }

  addSeen(): void {
    const innermost = this.#open.at(-1);
    if (innermost !== undefined) innermost.isSeen = true;
  }

  addHidden(text: string): void {
    const hidden = this.#open.at(-1)?.hidden;
    if (hidden !== undefined && hidden.length < TEXTS_MAX)
      hidden.push(squeeze(text.slice(0, 1000)).slice(0, START_CHARS));
  }

  /** Whether any of it is visible, and whether its name has invisible parts. */
  close(said: string): { readonly isSeen: boolean; readonly hidden: boolean } {
    const words = this.#open.pop() ?? { isSeen: false, hidden: [] };
    const outer = this.#open.at(-1);
    if (outer !== undefined) {
      outer.isSeen ||= words.isSeen;
      outer.hidden.push(...words.hidden.slice(0, TEXTS_MAX - outer.hidden.length));
    }
    return { isSeen: words.isSeen, hidden: words.hidden.some((text) => saysEscaped(said, text)) };
  }
}
