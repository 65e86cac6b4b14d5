import { quote } from "./marks.ts";
import { shorten, squeeze } from "./names.ts";

const VALUE_MAX = 500;
const URL_MAX = 120;
const OPTIONS_MAX = 20;
const OPTION_CHARS_MAX = 40;
const BUTTONS = new Set(["submit", "button", "reset", "image"]);
const NOT_WRITTEN = new Set(["checkbox", "radio", "range", "color", "image"]);
const ARIA_STATES = [
  ["aria-expanded", "expanded", "collapsed"],
  ["aria-selected", "selected", ""],
  ["aria-pressed", "pressed", ""],
  ["aria-checked", "checked", "unchecked"],
  ["aria-current", "current", ""],
] as const;
const NATIVE_STATES = [
  ["details[open] > summary", "expanded"],
  ["details:not([open]) > summary", "collapsed"],
  [":disabled, [aria-disabled=true]", "disabled"],
  [":required", "required"],
  ["input[readonly], textarea[readonly]", "read-only"],
] as const;

/** The description of an interactive element, with role and name: `textbox "Email" value="a@b.c" required`. */
export function describeElement(element: Element, title: string): string {
  return [title, ...valueOf(element), ...statesOf(element), ...targetOf(element)].join(" ");
}

function valueOf(element: Element): string[] {
  if (element instanceof HTMLInputElement) return inputValue(element);
  if (element instanceof HTMLTextAreaElement) return quoted("value", element.value);
  if (element instanceof HTMLSelectElement) return selectValue(element);
  const now = element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow");
  return now === null ? [] : quoted("value", now);
}

function inputValue(input: HTMLInputElement): string[] {
  const { type, value } = input;
  if (BUTTONS.has(type)) return [];
  if (type === "checkbox" || type === "radio") return [checkState(input)];
  if (type === "password") return value === "" ? [] : [`value of ${value.length} characters`];
  if (type === "file") return quoted("files", [...(input.files ?? [])].map(({ name }) => name).join(", "));
  return quoted("value", value);
}

/** The value is visible as text on the page. */
export function hasWrittenValue(element: Element): boolean {
  if (element instanceof HTMLInputElement) return element.value !== "" && !NOT_WRITTEN.has(element.type);
  return (element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement) && element.value !== "";
}

function checkState({ checked, indeterminate }: HTMLInputElement): string {
  if (indeterminate) return "partly checked";
  return checked ? "checked" : "unchecked";
}

function selectValue(select: HTMLSelectElement): string[] {
  const label = ({ label: text, value }: HTMLOptionElement): string =>
    shorten(squeeze(text || value), OPTION_CHARS_MAX);
  const options = [...select.options];
  const chosen = options.filter(({ selected }) => selected).map(label);
  const shown = options.slice(0, OPTIONS_MAX).map(label).map(quoteWhereNeeded).join(", ");
  const more = options.length - OPTIONS_MAX;
  return [...quoted("value", chosen.join(", ")), `options: ${shown}${more > 0 ? ` and ${more} more` : ""}`];
}

function quoted(name: string, value: string): string[] {
  const text = squeeze(value);
  return text === "" ? [] : [`${name}=${quote(shorten(text, VALUE_MAX))}`];
}

/** Commas separate options: an option with a comma or other delimiters is quoted. */
function quoteWhereNeeded(label: string): string {
  return /[",()[\]\\（［]| and \d/.test(label) ? quote(label) : label;
}

function statesOf(element: Element): string[] {
  const aria = ARIA_STATES.map(([attribute, isSet, isNot]) => {
    const value = element.getAttribute(attribute);
    if (value === null) return "";
    return value === "false" ? isNot : isSet;
  });
  const native = NATIVE_STATES.map(([selector, word]) => (element.matches(selector) ? word : ""));
  return [...aria, ...native, element === document.activeElement ? "focused" : ""].filter((word) => word !== "");
}

/** The target of a link; only the path on the same site. */
function targetOf(element: Element): string[] {
  if (!(element instanceof HTMLAnchorElement) || element.href === "") return [];
  const { href } = element;
  if (href.startsWith("javascript:")) return [];
  const own = `${location.origin}/`;
  return [
    shorten(
      (href.startsWith(own) ? href.slice(own.length - 1) : href).replaceAll(/[\s"]/g, encodeURIComponent),
      URL_MAX,
    ),
  ];
}
