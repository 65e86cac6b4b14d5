import type { FrameReport } from "../page-report.ts";
import { describeElement, hasWrittenValue } from "./describe.ts";
import { GeneratedText, type Side } from "./generated-text.ts";
import { type Refs, FRAMES, titled } from "./refs.ts";
import { areLettersHidden } from "./letters.ts";
import { LineBuilder } from "./line-builder.ts";
import { escapeMarks } from "./marks.ts";
import { shorten, squeeze, WidgetWords } from "./names.ts";
import { widgetRole } from "./roles.ts";
import {
  isElementHidden,
  isFrameHidden,
  isGeneratedHidden,
  type Place,
  pageSurroundings,
  seenChars,
  type Surroundings,
  surroundingsWithin,
} from "./visibility.ts";

/** Limits the recursion: a page can be deeper than the stack. */
const DEPTH_MAX = 1000;
const NODES_MAX = 300_000;
const HIDDEN_TEXTS_MAX = 40;
const HIDDEN_CHARS_MAX = 300;

const SKIPPED = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "META", "LINK", "defs", "style", "script"]);
/** Their content is part of their description. */
const CLOSED = new Set([
  "SELECT",
  "TEXTAREA",
  "INPUT",
  "IFRAME",
  "FRAME",
  "OBJECT",
  "EMBED",
  "VIDEO",
  "AUDIO",
  "CANVAS",
]);
const HEADINGS: Readonly<Record<string, Layout>> = { H1: "h1", H2: "h2", H3: "h3", H4: "h4", H5: "h5", H6: "h6" };
const BOXES: Readonly<Record<string, Layout>> = {
  contents: "inline",
  ruby: "inline",
  "ruby-text": "inline",
  table: "table",
  "table-cell": "cell",
  "list-item": "item",
};

/** Walks one frame once, in the order in which it is displayed, including shadow trees. */
export class FrameWalk {
  readonly #refs: Refs;
  readonly #lines = new LineBuilder();
  readonly #elements: Record<string, string> = {};
  readonly #hidden = new Set<string>();
  readonly #words = new WidgetWords();
  readonly #generated = new GeneratedText();
  #nodes = 0;

  constructor(refs: Refs) {
    this.#refs = refs;
  }

  report(): FrameReport {
    this.#generated.lookInto(document);
    const root = document.body ?? document.documentElement;
    if (root !== null) this.#visitElement(root, pageSurroundings(), 0);
    return {
      title: document.title,
      lines: this.#lines.finish(),
      elements: this.#elements,
      hidden: [...this.#hidden],
      nextRef: this.#refs.next,
      isCut: this.#nodes > NODES_MAX,
    };
  }

  #visitContents(element: Element, place: Place, depth: number): void {
    if (element.shadowRoot !== null) this.#generated.lookInto(element.shadowRoot);
    this.#visitGenerated(element, "::before", place);
    this.#visitChildren(element, place.style, place.around, depth);
    this.#visitGenerated(element, "::after", place);
  }

  #visitGenerated(element: Element, side: Side, { around }: Place): void {
    const generated = this.#generated.find(element, side);
    if (generated === undefined) return;
    if (isGeneratedHidden(element, generated.style, around)) return this.#hideWords(generated.text);
    this.#words.addSeen();
    this.#lines.add(generated.text);
  }

  #visitChildren(parent: Element, style: CSSStyleDeclaration, around: Surroundings, depth: number): void {
    for (const child of composedChildren(parent)) {
      this.#nodes += 1;
      if (this.#nodes > NODES_MAX || depth > DEPTH_MAX) return;
      if (isFoldedAway(child, parent)) {
        this.#hide(child.textContent ?? "");
        continue;
      }
      if (child instanceof Text) this.#visitText(child, parent, { style, around });
      else if (child instanceof Element) this.#visitElement(child, around, depth + 1);
    }
  }

  #visitText(node: Text, parent: Element, { style, around }: Pick<Place, "style" | "around">): void {
    const text = node.data;
    const isEmpty = !/\S/.test(text);
    const isPreformatted = style.whiteSpaceCollapse === "preserve";
    if (isEmpty && (!isPreformatted || around.isHidden)) return this.#lines.space();
    const seen = isEmpty ? text.length : seenChars(node, parent, { style, around });
    if (seen < text.length) this.#hideWords(text.slice(seen));
    if (seen === 0) return;
    if (!isEmpty) this.#words.addSeen();
    const shown = seen < text.length ? shorten(text, seen + 1) : text;
    if (isPreformatted) this.#lines.addPreformatted(shown);
    else this.#lines.add(shown);
  }

  #hideWords(text: string): void {
    this.#words.addHidden(text);
    this.#hide(text);
  }

  #visitElement(element: Element, outer: Surroundings, depth: number): void {
    if (SKIPPED.has(element.tagName)) return;
    if (element.tagName === "BR") return this.#lines.breakLine();
    if (element instanceof HTMLAreaElement) return this.#visitArea(element, outer);
    const style = getComputedStyle(element);
    // Reading a computed style is expensive and is done for every element.
    const { display } = style;
    if (display === "none" || !isRendered(element, display)) return this.#hide(element.textContent ?? "");
    const around = surroundingsWithin(element, style, outer);
    const place = { style, outer, around };
    const layout = layoutOf(element, display);
    this.#lines.open(layout);
    const ref = this.#openWidget(element, place);
    if (FRAMES.has(element.tagName)) this.#visitFrame(element, place);
    else if (!CLOSED.has(element.tagName)) this.#visitContents(element, place, depth);
    this.#describePicture(element, place);
    if (ref !== undefined) this.#closeWidget(element, ref, place);
    this.#lines.close(layout);
  }

  /** An area has no box (`display: none` in newer browsers): it is visible where the image of its map is. */
  #visitArea(area: HTMLAreaElement, outer: Surroundings): void {
    const picture = pictureOf(area);
    if (picture === undefined || !picture.checkVisibility()) return;
    const style = getComputedStyle(picture);
    const place = { style, outer, around: surroundingsWithin(picture, style, outer) };
    const ref = this.#openWidget(area, place);
    if (ref !== undefined) this.#closeWidget(picture, ref, place);
  }

  #openWidget(element: Element, { style, outer }: Place): number | undefined {
    if (style.visibility !== "visible") return undefined;
    const role = widgetRole(element, style, outer.cursor);
    if (role === undefined) return undefined;
    const shown = titled(element, role, this.#generated);
    const ref = this.#refs.numberOf(element, shown, this.#generated);
    this.#elements[ref] = describeElement(element, shown.title);
    this.#lines.mark(ref);
    this.#words.open();
    return ref;
  }

  /** Called after its content was walked: only then it is known whether any of it is visible. */
  #closeWidget(element: Element, ref: number, { style, outer, around }: Place): void {
    const said = this.#elements[ref] ?? "";
    const { isSeen, hidden } = this.#words.close(said);
    if (around.isHidden || (!isSeen && isElementHidden(element, style, outer))) {
      this.#elements[ref] = `${said} (not visible)`;
    } else if (hidden || isWrittenAway(element, style, around)) {
      this.#elements[ref] = `${said} ${isSeen ? "(text partly hidden)" : "(text not visible)"}`;
    }
  }

  #visitFrame(element: Element, place: Place): void {
    if (isFrameHidden(element, place)) return;
    const shown = titled(element, "frame", this.#generated);
    const ref = this.#refs.numberOf(element, shown, this.#generated);
    this.#elements[ref] = shown.title;
    this.#lines.markFrame(ref);
  }

  #describePicture(element: Element, { style, outer, around }: Place): void {
    const isPicture =
      element instanceof HTMLImageElement || element.tagName === "CANVAS" || element.getAttribute("role") === "img";
    const name = isPicture ? squeeze(element.getAttribute("alt") ?? element.getAttribute("aria-label") ?? "") : "";
    if (name === "") return;
    if (around.isHidden || isElementHidden(element, style, outer)) return this.#hide(name);
    this.#lines.addPicture(shorten(name, 200));
  }

  #hide(text: string): void {
    if (this.#hidden.size >= HIDDEN_TEXTS_MAX) return;
    const said = squeeze(text.slice(0, HIDDEN_CHARS_MAX * 10));
    if (said !== "") this.#hidden.add(escapeMarks(shorten(said, HIDDEN_CHARS_MAX)));
  }
}

/** A field whose value is not readable. */
function isWrittenAway(element: Element, style: CSSStyleDeclaration, { backdrop }: Surroundings): boolean {
  return hasWrittenValue(element) && areLettersHidden(element, element.getBoundingClientRect(), style, backdrop);
}

/** The content of a closed `details` is not displayed, which no style shows. */
function isFoldedAway(child: Node, parent: Element): boolean {
  if (!(parent instanceof HTMLDetailsElement) || parent.open) return false;
  return child !== parent.querySelector(":scope > summary");
}

function pictureOf(area: HTMLAreaElement): Element | undefined {
  const name = area.closest("map")?.name;
  const pictures = area.ownerDocument.querySelectorAll("img[usemap], object[usemap]");
  return [...pictures].find((picture) => picture.getAttribute("usemap") === `#${name}`);
}

function isRendered(element: Element, display: string): boolean {
  return display === "contents" || element.checkVisibility();
}

function composedChildren(element: Element): Iterable<Node> {
  if (element instanceof HTMLSlotElement) {
    const assigned = element.assignedNodes({ flatten: true });
    if (assigned.length > 0) return assigned;
  }
  return (element.shadowRoot ?? element).childNodes;
}

export type Layout = "inline" | "block" | "table" | "cell" | "item" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6";

function layoutOf(element: Element, display: string): Layout {
  return HEADINGS[element.tagName] ?? BOXES[display] ?? (display.startsWith("inline") ? "inline" : "block");
}
