import type { FrameReport } from "../page-report.ts";
import { describeElement } from "./describe.ts";
import { accessibleName, shorten, squeeze } from "./names.ts";
import { LineBuilder } from "./line-builder.ts";
import type { Refs } from "./refs.ts";
import { widgetRole } from "./roles.ts";
import { canvasSurroundings, isTextHidden, type Surroundings, surroundingsWithin } from "./visibility.ts";

/** A page can be made deeper than a stack is. */
const DEPTH_MAX = 1000;
const NODES_MAX = 300_000;
const HIDDEN_TEXTS_MAX = 40;
const HIDDEN_CHARS_MAX = 300;

const SKIPPED = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "META", "LINK", "defs", "style", "script"]);
/** Their contents are described with them. */
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
const FRAMES = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED"]);

/** Walks one frame once, in the order in which it is shown, shadow trees included. */
export class FrameWalk {
  readonly #refs: Refs;
  readonly #lines = new LineBuilder();
  readonly #elements: Record<string, string> = {};
  readonly #hidden = new Set<string>();
  #nodes = 0;

  constructor(refs: Refs) {
    this.#refs = refs;
  }

  report(): FrameReport {
    const root = document.body ?? document.documentElement;
    if (root !== null) this.#visitElement(root, canvasSurroundings(), 0);
    return {
      title: document.title,
      lines: this.#lines.finish(),
      elements: this.#elements,
      hidden: [...this.#hidden],
      nextRef: this.#refs.next,
      isCut: this.#nodes > NODES_MAX,
    };
  }

  #visitChildren(parent: Element, style: CSSStyleDeclaration, around: Surroundings, depth: number): void {
    for (const child of composedChildren(parent)) {
      this.#nodes += 1;
      if (this.#nodes > NODES_MAX || depth > DEPTH_MAX) return;
      if (isFoldedAway(child, parent)) {
        this.#hide(child.textContent ?? "");
        continue;
      }
      if (child instanceof Text) this.#visitText(child, style, around);
      else if (child instanceof Element) this.#visitElement(child, around, depth + 1);
    }
  }

  #visitText(node: Text, style: CSSStyleDeclaration, around: Surroundings): void {
    const text = node.data;
    const isEmpty = !/\S/.test(text);
    const isPreformatted = style.whiteSpaceCollapse === "preserve";
    if (isEmpty && (!isPreformatted || around.isHidden)) return this.#lines.space();
    if (!isEmpty && isTextHidden(node, style, around)) return this.#hide(text);
    if (isPreformatted) this.#lines.addPreformatted(text);
    else this.#lines.add(text);
  }

  #visitElement(element: Element, outer: Surroundings, depth: number): void {
    if (SKIPPED.has(element.tagName)) return;
    if (element.tagName === "BR") return this.#lines.breakLine();
    const style = getComputedStyle(element);
    if (style.display === "none" || !isRendered(element, style)) return this.#hide(element.textContent ?? "");
    const around = surroundingsWithin(element, style, outer);
    const layout = layoutOf(element, style);
    this.#lines.open(layout);
    this.#visitWidget(element, style, { outer, around });
    if (FRAMES.has(element.tagName)) this.#visitFrame(element, around);
    else if (!CLOSED.has(element.tagName)) this.#visitChildren(element, style, around, depth);
    if (!around.isHidden) this.#describePicture(element);
    this.#lines.close(layout);
  }

  #visitWidget(
    element: Element,
    style: CSSStyleDeclaration,
    { outer, around }: { readonly outer: Surroundings; readonly around: Surroundings },
  ): void {
    if (style.visibility !== "visible") return;
    const role = widgetRole(element, style, outer.cursor);
    if (role === undefined) return;
    const ref = this.#refs.numberOf(element);
    const note = around.isHidden ? " (not visible)" : "";
    this.#elements[ref] = `${describeElement(element, role)}${note}`;
    this.#lines.mark(ref);
  }

  #visitFrame(element: Element, around: Surroundings): void {
    const { width, height } = element.getBoundingClientRect();
    if (around.isHidden || width <= 1 || height <= 1) return;
    const ref = this.#refs.numberOf(element);
    const name = accessibleName(element);
    this.#elements[ref] = `frame${name === "" ? "" : ` "${name}"`}`;
    this.#lines.markFrame(ref);
  }

  #describePicture(element: Element): void {
    const isPicture =
      element instanceof HTMLImageElement || element.tagName === "CANVAS" || element.getAttribute("role") === "img";
    const name = isPicture ? (element.getAttribute("alt") ?? element.getAttribute("aria-label") ?? "") : "";
    if (squeeze(name) !== "") this.#lines.add(` (image: ${shorten(squeeze(name), 200)}) `);
  }

  #hide(text: string): void {
    if (this.#hidden.size >= HIDDEN_TEXTS_MAX) return;
    const said = squeeze(text.slice(0, HIDDEN_CHARS_MAX * 10));
    if (said !== "") this.#hidden.add(shorten(said, HIDDEN_CHARS_MAX));
  }
}

/** What a closed `details` holds beside its summary is shown by nobody, and no style says so. */
function isFoldedAway(child: Node, parent: Element): boolean {
  if (!(parent instanceof HTMLDetailsElement) || parent.open) return false;
  return child !== parent.querySelector(":scope > summary");
}

function isRendered(element: Element, style: CSSStyleDeclaration): boolean {
  return style.display === "contents" || element.checkVisibility();
}

function composedChildren(element: Element): Iterable<Node> {
  if (element instanceof HTMLSlotElement) {
    const assigned = element.assignedNodes({ flatten: true });
    if (assigned.length > 0) return assigned;
  }
  return (element.shadowRoot ?? element).childNodes;
}

export type Layout = "inline" | "block" | "table" | "cell" | "item" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6";

const HEADINGS: Readonly<Record<string, Layout>> = { H1: "h1", H2: "h2", H3: "h3", H4: "h4", H5: "h5", H6: "h6" };
const BOXES: Readonly<Record<string, Layout>> = {
  contents: "inline",
  ruby: "inline",
  "ruby-text": "inline",
  table: "table",
  "table-cell": "cell",
  "list-item": "item",
};

function layoutOf(element: Element, { display }: CSSStyleDeclaration): Layout {
  return HEADINGS[element.tagName] ?? BOXES[display] ?? (display.startsWith("inline") ? "inline" : "block");
}
