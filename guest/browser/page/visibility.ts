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
import { areLettersHidden, type Ground, groundWithin, pageGround } from "./letters.ts";
import { shapeOf } from "./shapes.ts";
import { SvgShapes } from "./colours.ts";

const FAINTEST_OPACITY = 0.05;
const SMALLEST_FONT_PX = 4;
/** Less of a thing than this says nothing. */
const SMALLEST_SEEN_PX = 2;
const SMALLEST_SCALE = 0.25;
/** Of a frame, on either side. */
const SMALLEST_SHARE = 0.25;
const FAR_INDENT_PX = -500;
/** Of a frame, on either side, without its border: in less, not even a word can be read. */
const SMALLEST_FRAME_PX = 12;
const AXES: Readonly<Record<string, string>> = { x: "1, 0, 0", y: "0, 1, 0", z: "0, 0, 1" };

/** What an element hands down to what is in it. */
export interface Surroundings {
  /** Nothing below can be seen. */
  readonly isHidden: boolean;
  readonly opacity: number;
  readonly clips: Clips;
  readonly ground: Ground;
  readonly cursor: string;
}

/** Where an element is: what is around it, and around what is in it. */
export interface Place {
  readonly style: CSSStyleDeclaration;
  readonly outer: Surroundings;
  readonly around: Surroundings;
}

/** Of the page as a whole, which is white where it does not say otherwise. */
export function pageSurroundings(): Surroundings {
  const style = getComputedStyle(document.documentElement);
  const clips = pageClips(style, document.body === null ? style : getComputedStyle(document.body));
  return { isHidden: false, opacity: 1, clips, ground: pageGround(style), cursor: "auto" };
}

/** For an element that is displayed. */
export function surroundingsWithin(element: Element, style: CSSStyleDeclaration, outer: Surroundings): Surroundings {
  const opacity = outer.opacity * Number(style.opacity) * filteredOpacity(style.filter);
  const isSkipped = style.contentVisibility === "hidden";
  const isBox = isClipping(element, style);
  const shape = shapeOf(element, style);
  const isAway = isTurnedAway(element, style) || (isBox && isBoxAway(element, style, outer));
  const isHidden = outer.isHidden || isSkipped || opacity < FAINTEST_OPACITY || isAway || isShapedAway(element, shape);
  const clips = cutBy(shape, clipsWithin(element, style, { outer: outer.clips, isBox }));
  const ground = groundWithin(element, style, outer.ground);
  return { isHidden, opacity, clips, ground: withShapes(element, ground), cursor: style.cursor };
}

function withShapes(element: Element, ground: Ground): Ground {
  if (!(element instanceof SVGSVGElement) || element.ownerSVGElement !== null) return ground;
  return { ...ground, shapes: new SvgShapes(element) };
}

function filteredOpacity(filter: string): number {
  if (filter === "none") return 1;
  return [...filter.matchAll(/\bopacity\(([\d.]+)\)/g)].reduce((product, [, factor]) => product * Number(factor), 1);
}

function isShapedAway(element: Element, shape: Area | undefined): boolean {
  return shape !== undefined && isOutside(element.getBoundingClientRect(), shape, SMALLEST_FONT_PX);
}

/** For an element that cuts off what is in it, or lets one scroll: nobody reads through a slit. */
function isBoxAway(element: Element, style: CSSStyleDeclaration, { clips }: Surroundings): boolean {
  const box = element.getBoundingClientRect();
  if (box.width < SMALLEST_FONT_PX || box.height < SMALLEST_FONT_PX) return true;
  return isOutside(box, areaOf(style, clips), SMALLEST_FONT_PX);
}

/** How many characters of a text of an element can be seen where it stands. */
export function seenChars(text: Text, element: Element, { style, around }: Pick<Place, "style" | "around">): number {
  if (around.isHidden || style.visibility !== "visible") return 0;
  if (Number.parseFloat(style.textIndent) < FAR_INDENT_PX) return 0;
  range.selectNodeContents(text);
  const box = range.getBoundingClientRect();
  if (box.width === 0 || box.height < SMALLEST_FONT_PX) return 0;
  const area = around.clips.inFlow;
  if (isOutside(box, area, SMALLEST_FONT_PX)) return 0;
  if (areLettersHidden(element, box, style, around.ground)) return 0;
  if (box.right <= area.right && box.bottom <= area.bottom) return text.length;
  return charsWithin(text, box, { area, fontPx: Number.parseFloat(style.fontSize) });
}

/** Letters reach a little over the edge of boxes that are made for them. Of several lines, each may be cut off at its end. */
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

/** Whether an element itself is out of sight; what is in it may be elsewhere. */
export function isElementHidden(element: Element, style: CSSStyleDeclaration, outer: Surroundings): boolean {
  if (outer.isHidden || style.visibility !== "visible") return true;
  if (style.display === "contents") return false;
  return isOutside(element.getBoundingClientRect(), areaOf(style, outer.clips), SMALLEST_SEEN_PX);
}

/** What styles add has no place of its own that could be asked for: it is where its element is, unless its style says otherwise. */
export function isGeneratedHidden(element: Element, style: CSSStyleDeclaration, around: Surroundings): boolean {
  const own = surroundingsWithin(element, style, around);
  if (own.isHidden || style.visibility !== "visible") return true;
  const offsets = [style.textIndent, style.left, style.top, style.marginLeft, style.marginTop];
  if (offsets.some((offset) => Number.parseFloat(offset) < FAR_INDENT_PX)) return true;
  const box = element.getBoundingClientRect();
  return isOutside(box, own.clips.inFlow, SMALLEST_FONT_PX) || areLettersHidden(element, box, style, own.ground);
}

/** What a frame shows stands inside its border and padding. */
function isFrameTiny({ clientWidth, clientHeight }: Element, style: CSSStyleDeclaration): boolean {
  const px = Number.parseFloat;
  const width = clientWidth - px(style.paddingLeft) - px(style.paddingRight);
  const height = clientHeight - px(style.paddingTop) - px(style.paddingBottom);
  return Math.min(width, height) < SMALLEST_FRAME_PX;
}

/** A frame's own script knows nothing of what is around it, nor that it is shown smaller than it is, or hardly at all. */
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

/** Where the beginning of a text stands. */
function textBox(text: Text, chars: number): DOMRect {
  range.setStart(text, 0);
  range.setEnd(text, chars);
  return range.getBoundingClientRect();
}

/** Whether the element shows its back, which is not drawn. */
function isTurnedAway(element: Element, style: CSSStyleDeclaration): boolean {
  if (style.backfaceVisibility !== "hidden" || !isTurnable(style)) return false;
  let turned = matrixOf(style);
  // A card that is turned over turns the sides that are fixed to it.
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

/** How things move and grow does not turn them. What is not drawn has no matrix, and is not turned. */
function matrixOf({ rotate, transform }: CSSStyleDeclaration): DOMMatrix {
  const own = new DOMMatrix(transform.startsWith("matrix") ? transform : "");
  if (rotate === "none") return own;
  const parts = rotate.split(" ");
  const angle = parts.pop() ?? "0deg";
  const [axis = "z"] = parts;
  return new DOMMatrix(`rotate3d(${AXES[axis] ?? parts.join(", ")}, ${angle})`).multiply(own);
}
