const NAME_MAX = 100;

export function squeeze(text: string): string {
  return text.replaceAll(/[\s\u200b\u00ad]+/g, " ").trim();
}

export function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** What the element is called, as a screen reader would say it. */
export function accessibleName(element: Element): string {
  for (const source of [fromLabelledBy, fromAriaLabel, fromLabels, fromOwnText, fromAttributes]) {
    const name = squeeze(source(element));
    if (name !== "") return shorten(name, NAME_MAX);
  }
  return "";
}

function fromLabelledBy(element: Element): string {
  const ids = element.getAttribute("aria-labelledby")?.split(/\s+/) ?? [];
  const root = element.getRootNode();
  const scope = root instanceof ShadowRoot || root instanceof Document ? root : document;
  return ids.map((id) => scope.getElementById(id)?.textContent ?? "").join(" ");
}

function fromAriaLabel(element: Element): string {
  return element.getAttribute("aria-label") ?? "";
}

function fromLabels(element: Element): string {
  const isField =
    element instanceof HTMLInputElement ||
    element instanceof HTMLSelectElement ||
    element instanceof HTMLTextAreaElement;
  if (!isField || element.labels === null) return "";
  return [...element.labels].map(labelText).join(" ");
}

/** A label around its field does not say what is in the field. */
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

function fromOwnText(element: Element): string {
  if (element instanceof HTMLInputElement) {
    return ["submit", "button", "reset"].includes(element.type) ? element.value : "";
  }
  if (element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement) return "";
  if (element.childElementCount === 0) return element.textContent ?? "";
  const text = element instanceof HTMLElement ? element.innerText : (element.textContent ?? "");
  return text.trim() === "" ? fromPictures(element) : text;
}

/** A button that shows nothing but an icon is called what the icon is called. */
function fromPictures(element: Element): string {
  const picture = element.querySelector("img[alt], [aria-label], svg title, [title]");
  if (picture === null) return "";
  const said = ["alt", "aria-label", "title"].map((name) => picture.getAttribute(name) ?? "").find(Boolean);
  return said ?? picture.textContent ?? "";
}

function fromAttributes(element: Element): string {
  const names = ["alt", "placeholder", "title", "name", "aria-placeholder"];
  return names.map((name) => element.getAttribute(name) ?? "").find((value) => value.trim() !== "") ?? "";
}
