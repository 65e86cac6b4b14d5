let isInstalled = false;

/**
 * xterm.js writes style elements and style attributes, which the Content-Security-Policy forbids. After this call,
 * style elements become constructed style sheets and style attributes become properties. The policy allows both,
 * because markup cannot create them. The option of xterm.js for another document does not reach all of its parts.
 */
export function installStrictStyles(): void {
  if (isInstalled) return;
  isInstalled = true;
  const createElement = document.createElement.bind(document);
  const strictCreate = (name: string, options?: ElementCreationOptions): HTMLElement =>
    name === "style" ? styleStandIn(createElement("span")) : createElement(name, options);
  Object.defineProperty(document, "createElement", { value: strictCreate });
  // `setAttribute` is called with its element below.
  // oxlint-disable-next-line typescript/unbound-method
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function strictSet(name, value) {
    if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

/** Replaces a style element: it writes its text to a style sheet until it is removed. */
function styleStandIn(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  element.hidden = true;
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    remove();
  };
  Object.defineProperty(element, "textContent", {
    set: (text: string) => {
      sheet.replaceSync(text);
    },
  });
  return element;
}
