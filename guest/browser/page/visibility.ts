import {
  type Area,
  areaOf,
  type Clips,
  clipsWithin,
  cutBy,
  intersection,
  isClipping,
  isOutside,
  pageClips,
} from "./clipping.ts";
import { areLettersHidden, type Backdrop, backdropWithin, pageBackdrop } from "./letters.ts";
import { shapeOf } from "./shapes.ts";
import { SvgShapes } from "./colours.ts";

const FAINTEST_OPACITY = 0.05;
const SMALLEST_FONT_PX = 4;
/** Minimum visible size of an element. */
const SMALLEST_SEEN_PX = 2;
const SMALLEST_SCALE = 0.25;
/** Minimum visible share of a frame, on each axis. */
const SMALLEST_SHARE = 0.25;
const FAR_INDENT_PX = -500;
/** Minimum size of a frame without its border, on each axis: a smaller one cannot show a word. */
const SMALLEST_FRAME_PX = 12;
const AXES: Readonly<Record<string, string>> = { x: "1, 0, 0", y: "0, 1, 0", z: "0, 0, 1" };

/** What an element passes on to its content. */
export interface Surroundings {
  /** No content is visible. */
  readonly isHidden: boolean;
  readonly opacity: number;
  readonly clips: Clips;
  readonly backdrop: Backdrop;
  readonly cursor: string;
}

/** The surroundings of an element, and of its content. */
export interface Place {
  readonly style: CSSStyleDeclaration;
  readonly outer: Surroundings;
  readonly around: Surroundings;
}

/** Of the whole page, which is white by default. */
export function pageSurroundings(): Surroundings {
  const style = getComputedStyle(document.documentElement);
  const clips = pageClips(style, document.body === null ? style : getComputedStyle(document.body));
  return { isHidden: false, opacity: 1, clips, backdrop: pageBackdrop(style), cursor: "auto" };
}

/** For a displayed element. */
export function surroundingsWithin(element: Element, style: CSSStyleDeclaration, outer: Surroundings): Surroundings {
  const opacity = outer.opacity * Number(style.opacity) * filteredOpacity(style.filter);
  const isSkipped = style.contentVisibility === "hidden";
  const isBox = isClipping(element, style);
  const shape = shapeOf(element, style);
  const isAway = isTurnedAway(element, style) || (isBox && isBoxAway(element, style, outer));
  const isHidden = outer.isHidden || isSkipped || opacity < FAINTEST_OPACITY || isAway || isShapedAway(element, shape);
  const clips = cutBy(shape, clipsWithin(element, style, { outer: outer.clips, isBox }));
  const backdrop = backdropWithin(element, style, outer.backdrop);
  return { isHidden, opacity, clips, backdrop: withShapes(element, backdrop), cursor: style.cursor };
}

function withShapes(element: Element, backdrop: Backdrop): Backdrop {
  if (!(element instanceof SVGSVGElement) || element.ownerSVGElement !== null) return backdrop;
  return { ...backdrop, shapes: new SvgShapes(element) };
}

function filteredOpacity(filter: string): number {
  if (filter === "none") return 1;
  return [...filter.matchAll(/\bopacity\(([\d.]+)\)/g)].reduce((product, [, factor]) => product * Number(factor), 1);
}

function isShapedAway(element: Element, shape: Area | undefined): boolean {
  return shape !== undefined && isOutside(element.getBoundingClientRect(), shape, SMALLEST_FONT_PX);
}

/** For an element that clips or scrolls its content: text in a very small box is not readable. */
function isBoxAway(element: Element, style: CSSStyleDeclaration, { clips }: Surroundings): boolean {
  const box = element.getBoundingClientRect();
  if (box.width < SMALLEST_FONT_PX || box.height < SMALLEST_FONT_PX) return true;
  return isOutside(box, areaOf(style, clips), SMALLEST_FONT_PX);
}

/** How many characters of a text are visible. */
export function seenChars(text: Text, element: Element, { style, around }: Pick<Place, "style" | "around">): number {
  if (around.isHidden || style.visibility !== "visible") return 0;
  if (Number.parseFloat(style.textIndent) < FAR_INDENT_PX) return 0;
  range.selectNodeContents(text);
  const box = range.getBoundingClientRect();
  if (box.width === 0 || box.height < SMALLEST_FONT_PX) return 0;
  const area = around.clips.inFlow;
  if (isOutside(box, area, SMALLEST_FONT_PX)) return 0;
  if (areLettersHidden(element, box, style, around.backdrop)) return 0;
  if (box.right <= area.right && box.bottom <= area.bottom) return text.length;
  return charsWithin(text, box, { area, fontPx: Number.parseFloat(style.fontSize) });
}

/** Letters may exceed the edge of their box slightly. Each of several lines may be cut off. */
function charsWithin(text: Text, box: DOMRect, { area, fontPx }: { area: Area; fontPx: number }): number {
  const right = box.height < 2 * fontPx ? area.right + fontPx : Infinity;
  const bottom = area.bottom + fontPx * 0.75;
  const isWithin = (chars: number): boolean => {
    const part = textBox(text, chars);
    return part.right <= right && part.bottom <= bottom;
  };
  if (isWithin(text.length)) return text.length;
  let seen = 0;
  for (let step = text.length; step >= 1; step = Math.floor(step / 2)) {
    while (seen + step < text.length && isWithin(seen + step)) seen += step;
  }
  return /\S/.test(text.data.slice(0, seen)) ? seen : 0;
}

/** Whether the element itself is not visible; its content may be elsewhere. */
export function isElementHidden(element: Element, style: CSSStyleDeclaration, outer: Surroundings): boolean {
  if (outer.isHidden || style.visibility !== "visible") return true;
  if (style.display === "contents") return false;
  return isOutside(element.getBoundingClientRect(), areaOf(style, outer.clips), SMALLEST_SEEN_PX);
}

/** Generated content has no box that can be read: it is at its element's position unless its style says otherwise. */
export function isGeneratedHidden(element: Element, style: CSSStyleDeclaration, around: Surroundings): boolean {
  const own = surroundingsWithin(element, style, around);
  if (own.isHidden || style.visibility !== "visible") return true;
  const offsets = [style.textIndent, style.left, style.top, style.marginLeft, style.marginTop];
  if (offsets.some((offset) => Number.parseFloat(offset) < FAR_INDENT_PX)) return true;
  const box = element.getBoundingClientRect();
  return isOutside(box, own.clips.inFlow, SMALLEST_FONT_PX) || areLettersHidden(element, box, style, own.backdrop);
}

/** The content of a frame is inside its border and padding. */
function isFrameTiny({ clientWidth, clientHeight }: Element, style: CSSStyleDeclaration): boolean {
  const px = Number.parseFloat;
  const width = clientWidth - px(style.paddingLeft) - px(style.paddingRight);
  const height = clientHeight - px(style.paddingTop) - px(style.paddingBottom);
  return Math.min(width, height) < SMALLEST_FRAME_PX;
}

/** The script in a frame does not know the frame's surroundings, scale or visibility. */
export function isFrameHidden(frame: Element, { style, outer, around }: Place): boolean {
  if (around.isHidden || isElementHidden(frame, style, outer)) return true;
  const box = frame.getBoundingClientRect();
  const { width, height } = box;
  if (isFrameTiny(frame, style)) return true;
  if (width < SMALLEST_FONT_PX || height < SMALLEST_FONT_PX) return true;
  const seen = intersection(intersection(box, areaOf(style, outer.clips)), around.clips.inFlow);
  if (Math.min((seen.right - seen.left) / width, (seen.bottom - seen.top) / height) < SMALLEST_SHARE) return true;
  return (
    frame instanceof HTMLElement && Math.min(width / frame.offsetWidth, height / frame.offsetHeight) < SMALLEST_SCALE
  );
}

const range = document.createRange();

/** The position of the beginning of a text. */
function textBox(text: Text, chars: number): DOMRect {
  range.setStart(text, 0);
  range.setEnd(text, chars);
  return range.getBoundingClientRect();
}

/** Whether the element shows its back, which is not drawn. */
function isTurnedAway(element: Element, style: CSSStyleDeclaration): boolean {
  if (style.backfaceVisibility !== "hidden" || !isTurnable(style)) return false;
  let turned = matrixOf(style);
  // A rotated card also rotates the sides that are attached to it.
  for (let { parentElement } = element; parentElement !== null; { parentElement } = parentElement) {
    const outer = getComputedStyle(parentElement);
    if (outer.transformStyle !== "preserve-3d") break;
    turned = matrixOf(outer).multiply(turned);
  }
  return turned.inverse().m33 < 0;
}

function isTurnable({ display }: CSSStyleDeclaration): boolean {
  return display !== "inline" && display !== "contents";
}

/** Translations and scaling do not rotate. An element without a box has no matrix and is not rotated. */
function matrixOf({ rotate, transform }: CSSStyleDeclaration): DOMMatrix {
  const own = new DOMMatrix(transform.startsWith("matrix") ? transform : "");
  if (rotate === "none") return own;
  const parts = rotate.split(" ");
  const angle = parts.pop() ?? "0deg";
  const [axis = "z"] = parts;
  return new DOMMatrix(`rotate3d(${AXES[axis] ?? parts.join(", ")}, ${angle})`).multiply(own);
}
