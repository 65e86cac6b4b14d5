import type { GeneratedText } from "./generated-text.ts";
import { quote } from "./marks.ts";
import { accessibleName } from "./names.ts";
import { standingRole } from "./roles.ts";

/** What is in them is put there by whoever uses them: it is no name. */
const FILLED = new Set(["textbox", "searchbox", "combobox", "listbox", "slider", "spinbutton"]);

export const FRAMES: ReadonlySet<string> = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED"]);

export interface Titled {
  readonly role: string;
  /** Role and name, as a snapshot shows them. */
  readonly title: string;
}

export function titled(element: Element, role: string, generated: GeneratedText): Titled {
  return { role, title: join(role, accessibleName(element, generated)) };
}

/** Role and name, by which an element is known again. */
export function identityOf(element: Element, { role, title }: Titled, generated: GeneratedText): string {
  return FILLED.has(role) ? join(role, accessibleName(element, generated, { isFilled: true })) : title;
}

function join(role: string, name: string): string {
  return name === "" ? role : `${role} ${quote(name)}`;
}

export function roleOf(element: Element): string {
  return FRAMES.has(element.tagName) ? "frame" : (standingRole(element) ?? "clickable");
}

const SAID = ["aria-label", "aria-labelledby", "alt", "title", "value", "placeholder"];

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
