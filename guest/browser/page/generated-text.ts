export type Side = "::before" | "::after";

interface Generated {
  readonly text: string;
  readonly style: CSSStyleDeclaration;
}

/** Text that styles add before and after the content of an element. */
export class GeneratedText {
  #isAnywhere: boolean;

  constructor(isAnywhere = false) {
    this.#isAnywhere = isAnywhere;
  }

  /** Only elements that a style may add text to are checked: checking all costs a sixth of a snapshot. */
  lookInto(root: Document | ShadowRoot): void {
    this.#isAnywhere ||= [...root.styleSheets, ...root.adoptedStyleSheets].some(isGenerating);
  }

  get isAnywhere(): boolean {
    return this.#isAnywhere;
  }

  find(element: Element, side: Side): Generated | undefined {
    const found = this.#find(element, side);
    return found === undefined || found.shown.trim() === "" ? undefined : { text: found.shown, style: found.style };
  }

  /** As a screen reader reads it. */
  around(element: Element, inside: string): string {
    if (!this.#isAnywhere) return inside;
    return `${this.#said(element, "::before")}${inside}${this.#said(element, "::after")}`;
  }

  #said(element: Element, side: Side): string {
    const found = this.#find(element, side);
    return found === undefined || found.style.visibility !== "visible" ? "" : found.said;
  }

  #find(element: Element, side: Side): (Words & { readonly style: CSSStyleDeclaration }) | undefined {
    if (!this.#isAnywhere || !(element instanceof HTMLElement) || element instanceof HTMLImageElement) return undefined;
    const style = getComputedStyle(element, side);
    const { content } = style;
    if (!content.includes('"') || style.display === "none") return undefined;
    const { shown, said } = wordsOf(content);
    return style.display.startsWith("inline")
      ? { shown, said, style }
      : { shown: ` ${shown} `, said: ` ${said} `, style };
  }
}

/** The rules of a style sheet from another site cannot be read. */
function isGenerating(sheet: CSSStyleSheet): boolean {
  try {
    return [...sheet.cssRules].some(isGeneratingRule);
  } catch {
    return true;
  }
}

function isGeneratingRule(rule: CSSRule): boolean {
  if (rule instanceof CSSImportRule) return rule.styleSheet !== null && isGenerating(rule.styleSheet);
  if (rule instanceof CSSStyleRule && hasWords(rule.style.content) && /:(?:before|after)/i.test(rule.selectorText))
    return true;
  return hasRules(rule) && [...rule.cssRules].some(isGeneratingRule);
}

function hasRules(rule: CSSRule): rule is CSSRule & { readonly cssRules: CSSRuleList } {
  return "cssRules" in rule;
}

/** Icon fonts use code points without letters. */
const ICONS = /\p{Co}/gu;

function hasWords(content: string): boolean {
  return content !== "" && /"\s*[^"\s]|(?:attr|var)\(/.test(content.replaceAll(ICONS, ""));
}

interface Words {
  readonly shown: string;
  readonly said: string;
}

const STRING = String.raw`"((?:[^"\\]|\\.)*)"`;
const PARTS = new RegExp(String.raw`[\w-]+\((?:${STRING}|[^()"])*\)|${STRING}| (/) `, "gs");

/** `"→ " url("a.png") "x" / "spoken"`: its strings, and the alternative text after the slash. */
function wordsOf(content: string): Words {
  let shown = "";
  let said: string | undefined;
  for (const [, , text, slash] of content.matchAll(PARTS)) {
    if (slash !== undefined) said = "";
    else if (said === undefined) shown += unescaped(text ?? "");
    else said += unescaped(text ?? "");
  }
  return { shown, said: said === undefined ? shown : ` ${said} ` };
}

function unescaped(text: string): string {
  return text
    .replaceAll(/\\(?:([0-9a-f]{1,6}) ?|(.))/gis, (_, code: string | undefined, char: string) =>
      code === undefined ? char : String.fromCodePoint(Number.parseInt(code, 16)),
    )
    .replaceAll(ICONS, "");
}
