import { accessibleName, shorten, squeeze } from "./names.ts";

const VALUE_MAX = 500;
const URL_MAX = 120;
const OPTIONS_MAX = 20;
const OPTION_CHARS_MAX = 40;

/** One line about an element that can be used: `textbox "Email" value="a@b.c" required`. */
export function describeElement(element: Element, role: string): string {
  const name = accessibleName(element);
  const parts = [role, ...(name === "" ? [] : [`"${name}"`]), ...valueOf(element), ...statesOf(element), ...targetOf(element)];
  return parts.join(" ");
}

function valueOf(element: Element): string[] {
  if (element instanceof HTMLInputElement) return inputValue(element);
  if (element instanceof HTMLTextAreaElement) return quoted("value", element.value);
  if (element instanceof HTMLSelectElement) return selectValue(element);
  const now = element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow");
  return now === null ? [] : quoted("value", now);
}

function inputValue(input: HTMLInputElement): string[] {
  switch (input.type) {
    case "checkbox":
    case "radio":
      return input.checked ? ["checked"] : input.indeterminate ? ["partly checked"] : ["unchecked"];
    case "submit":
    case "button":
    case "reset":
    case "image":
      return [];
    case "password":
      return input.value === "" ? [] : [`value of ${input.value.length} characters`];
    case "file":
      return quoted("files", [...(input.files ?? [])].map(({ name }) => name).join(", "));
    default:
      return quoted("value", input.value);
  }
}

function selectValue(select: HTMLSelectElement): string[] {
  const label = ({ label: text, value }: HTMLOptionElement): string => shorten(squeeze(text || value), OPTION_CHARS_MAX);
  const options = [...select.options];
  const chosen = options.filter(({ selected }) => selected).map(label);
  const shown = options.slice(0, OPTIONS_MAX).map(label).join(", ");
  const more = options.length - OPTIONS_MAX;
  return [...quoted("value", chosen.join(", ")), `options: ${shown}${more > 0 ? ` and ${more} more` : ""}`];
}

function quoted(name: string, value: string): string[] {
  const text = squeeze(value);
  return text === "" ? [] : [`${name}="${shorten(text, VALUE_MAX)}"`];
}

const STATES = [
  ["aria-expanded", "expanded", "collapsed"],
  ["aria-selected", "selected", ""],
  ["aria-pressed", "pressed", ""],
  ["aria-checked", "checked", "unchecked"],
  ["aria-current", "current", ""],
] as const;

function statesOf(element: Element): string[] {
  const states: string[] = [];
  for (const [attribute, isSet, isNot] of STATES) {
    const value = element.getAttribute(attribute);
    if (value === null) continue;
    const word = value === "false" ? isNot : isSet;
    if (word !== "") states.push(word);
  }
  if (element instanceof HTMLElement && element.tagName === "SUMMARY" && element.parentElement instanceof HTMLDetailsElement)
    states.push(element.parentElement.open ? "expanded" : "collapsed");
  if (element.matches(":disabled") || element.getAttribute("aria-disabled") === "true") states.push("disabled");
  if (element.matches(":required")) states.push("required");
  if (element.matches(":read-only") && element.matches("input, textarea") && element.hasAttribute("readonly"))
    states.push("read-only");
  if (element === document.activeElement) states.push("focused");
  return states;
}

/** Where a link leads; on the same site the path is enough. */
function targetOf(element: Element): string[] {
  if (!(element instanceof HTMLAnchorElement) || element.href === "") return [];
  const { href } = element;
  if (href.startsWith("javascript:")) return [];
  const own = `${location.origin}/`;
  return [shorten(href.startsWith(own) ? href.slice(own.length - 1) : href, URL_MAX)];
}
