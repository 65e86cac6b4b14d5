const WIDGET_ROLES = new Set(
  "button link checkbox radio switch tab menuitem menuitemcheckbox menuitemradio option treeitem textbox searchbox combobox listbox slider spinbutton".split(
    " ",
  ),
);

const INPUT_ROLES: Readonly<Record<string, string>> = {
  button: "button",
  checkbox: "checkbox",
  color: "color field",
  file: "file field",
  image: "button",
  number: "spinbutton",
  radio: "radio",
  range: "slider",
  reset: "button",
  search: "searchbox",
  submit: "button",
};

const LINKS = "a[href], area[href], svg a[*|href]";
const TAG_ROLES: Readonly<Record<string, string>> = { BUTTON: "button", SUMMARY: "button", TEXTAREA: "textbox" };

/** The role of an interactive element; `undefined` for others. */
export function widgetRole(element: Element, style: CSSStyleDeclaration, parentCursor: string): string | undefined {
  const role = standingRole(element);
  if (role !== undefined) return role;
  const isClickable =
    (style.cursor === "pointer" && parentCursor !== "pointer" && !isLabelOfVisible(element)) ||
    element.hasAttribute("onclick") ||
    isFocusable(element);
  return isClickable ? "clickable" : undefined;
}

/** The role independent of context and style. */
export function standingRole(element: Element): string | undefined {
  return givenRole(element) ?? nativeRole(element) ?? (isEditable(element) ? "textbox" : undefined);
}

function givenRole(element: Element): string | undefined {
  return element
    .getAttribute("role")
    ?.toLowerCase()
    .split(/\s+/)
    .find((role) => WIDGET_ROLES.has(role));
}

function nativeRole(element: Element): string | undefined {
  if (element instanceof HTMLInputElement) {
    return element.type === "hidden" ? undefined : (INPUT_ROLES[element.type] ?? "textbox");
  }
  if (element instanceof HTMLSelectElement) return element.multiple || element.size > 1 ? "listbox" : "combobox";
  if (element instanceof HTMLMediaElement) return element.controls ? element.tagName.toLowerCase() : undefined;
  return element.matches(LINKS) ? "link" : TAG_ROLES[element.tagName];
}

function isEditable(element: Element): boolean {
  if (!(element instanceof HTMLElement) || !element.isContentEditable) return false;
  return element.parentElement?.isContentEditable !== true;
}

function isFocusable(element: Element): boolean {
  const index = element.getAttribute("tabindex");
  return index !== null && Number(index) >= 0 && element.tagName !== "BODY";
}

/** A label represents its field only when a script hides the field and shows the label; otherwise the field has its own ref. */
function isLabelOfVisible(element: Element): boolean {
  const label = element.closest("label");
  const control = label?.control;
  return control instanceof HTMLElement && control.checkVisibility({ visibilityProperty: true });
}
