import type { GeneratedText } from "./generated-text.ts";
import { accessibleName } from "./names.ts";
import { standingRole } from "./roles.ts";

/** What is in them is put there by whoever uses them: it is no name. */
const FILLED = new Set(["textbox", "searchbox", "combobox", "listbox", "slider", "spinbutton"]);

export const FRAMES: ReadonlySet<string> = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED"]);

export function titleOf(element: Element, role: string, generated: GeneratedText): string {
  const name = accessibleName(element, generated);
  return name === "" ? role : `${role} "${name}"`;
}

/** Role and name, by which an element is known again. `title`: those that a snapshot shows, where they are known. */
export function identityOf(element: Element, generated: GeneratedText, title?: string): string {
  const role = roleOf(element);
  if (!FILLED.has(role)) return title ?? titleOf(element, role, generated);
  return `${role} "${accessibleName(element, generated, { isFilled: true })}"`;
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
