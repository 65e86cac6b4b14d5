import { blended, type Colour, mixed, type Paint, paintOf, svgPaints, type SvgShapes } from "./colours.ts";

const WHITE: Colour = [255, 255, 255];
const FAINTEST_OPACITY = 0.05;
const SMALLEST_FONT_PX = 4;
/** Relative to the letter size. */
const LARGEST_BLUR = 0.15;
/** Colours whose channels differ by less look the same. */
const SAME_COLOUR = 12;
const COLOURS = /\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)/g;

/** What is behind letters, and the effects on them. */
export interface Backdrop {
  /** The background colour; `undefined` for a picture or when it is not known. */
  readonly background: Colour | undefined;
  /** Paints that show through transparent letters (`background-clip: text`); an `undefined` entry is not known. */
  readonly through: readonly (Paint | undefined)[];
  readonly blends: readonly Blend[];
  readonly blurPx: number;
  /** Shapes of the surrounding SVG. */
  readonly shapes: SvgShapes | undefined;
}

interface Blend {
  readonly mode: string;
  readonly behind: Colour | undefined;
}

export function backdropWithin(element: Element, style: CSSStyleDeclaration, outer: Backdrop): Backdrop {
  const { mixBlendMode: mode, filter } = style;
  const painted = paintedWithin(element, style, outer);
  if (mode === "normal" && filter === "none") return painted;
  return {
    ...painted,
    blends: mode === "normal" ? outer.blends : [...outer.blends, { mode, behind: outer.background }],
    blurPx: outer.blurPx + blurOf(filter),
  };
}

/** Most elements paint nothing, so fewer style properties are read. */
function paintedWithin(element: Element, style: CSSStyleDeclaration, outer: Backdrop): Backdrop {
  const { backgroundImage } = style;
  const own = backgroundImage === "none" ? paintOf(style.backgroundColor) : undefined;
  if (own?.alpha === 0) return outer;
  // Elements without a box are not painted.
  if (style.display === "contents" || isInsideDrawing(element)) return outer;
  if (isClippedToText(style)) return { ...outer, through: paintsThrough(style) };
  return { ...outer, background: own === undefined ? undefined : over(own, outer.background) };
}

function over(paint: Paint, behind: Colour | undefined): Colour | undefined {
  if (paint.alpha === 1) return paint.colour;
  return behind === undefined ? undefined : mixed(paint, behind);
}

export function pageBackdrop(style: CSSStyleDeclaration): Backdrop {
  const white = { background: WHITE, through: [], blends: [], blurPx: 0, shapes: undefined };
  return paintedWithin(document.documentElement, style, white);
}

function isInsideDrawing(element: Element): element is SVGElement {
  return element instanceof SVGElement && element.ownerSVGElement !== null;
}

function isClippedToText({ backgroundClip }: CSSStyleDeclaration): boolean {
  return backgroundClip !== "border-box" && backgroundClip.split(", ").every((layer) => layer === "text");
}

function paintsThrough({ backgroundImage, backgroundColor }: CSSStyleDeclaration): (Paint | undefined)[] {
  if (backgroundImage === "none") return [paintOf(backgroundColor)];
  if (!backgroundImage.includes("gradient(") || backgroundImage.includes("url(")) return [undefined];
  return [...(backgroundImage.match(COLOURS) ?? [""]), backgroundColor].map(paintOf);
}

function blurOf(filter: string): number {
  if (filter === "none") return 0;
  return [...filter.matchAll(/\bblur\(([\d.]+)px\)/g)].reduce((sum, [, px]) => sum + Number(px), 0);
}

/** Whether letters are too small or too blurred, or have the colour of their background. */
export function areLettersHidden(
  element: Element,
  box: DOMRect,
  style: CSSStyleDeclaration,
  backdrop: Backdrop,
): boolean {
  const fontPx = Number.parseFloat(style.fontSize);
  if (fontPx < SMALLEST_FONT_PX || backdrop.blurPx > fontPx * LARGEST_BLUR) return true;
  const drawn = isInsideDrawing(element) ? svgPaints(element, style) : htmlPaints(style, backdrop);
  const paints = drawn.filter((paint) => paint === undefined || paint.alpha >= FAINTEST_OPACITY);
  if (paints.length === 0) return true;
  const background = isInsideDrawing(element) ? behindIn(box, element, backdrop) : backdrop.background;
  if (background === undefined || style.textShadow !== "none") return false;
  if (!paints.every((paint) => isSame(paint, background, backdrop.blends))) return false;
  return !isOnPicture(element, box);
}

/** Opaque letters show nothing behind them. */
function htmlPaints(style: CSSStyleDeclaration, { through }: Backdrop): (Paint | undefined)[] {
  const own = paintOf(style.webkitTextFillColor);
  if (own === undefined) return [own];
  const stroke = Number.parseFloat(style.webkitTextStrokeWidth) > 0 ? [paintOf(style.webkitTextStrokeColor)] : [];
  return [own, ...stroke, ...(own.alpha === 1 ? [] : through)];
}

function behindIn(box: DOMRect, element: Element, { background, shapes }: Backdrop): Colour | undefined {
  return shapes === undefined ? background : shapes.behind(element, box, background);
}

/** Whether a paint looks the same as its background, directly or after a blend. */
function isSame(paint: Paint | undefined, background: Colour, blends: readonly Blend[]): boolean {
  if (paint === undefined) return false;
  const letters = mixed(paint, background);
  if (isSameColour(letters, background)) return true;
  return blends.some(({ mode, behind }) => {
    if (behind === undefined) return false;
    const backdrop = background === behind ? behind : blended(mode, background, behind);
    return isSameColour(blended(mode, letters, behind), backdrop);
  });
}

function isSameColour(one: Colour, other: Colour): boolean {
  return one.every((channel, index) => Math.abs(channel - (other[index] ?? 0)) < SAME_COLOUR);
}

/** On a photograph, white letters have the background colour of the page. */
function isOnPicture(element: Element, box: DOMRect): boolean {
  const x = box.left + box.width / 2;
  const y = box.top + box.height / 2;
  for (const picture of document.querySelectorAll("img, video, canvas, svg, picture")) {
    const { left, right, top, bottom } = picture.getBoundingClientRect();
    const isThere = left <= x && x <= right && top <= y && y <= bottom;
    if (isThere && !(isInsideDrawing(element) && picture.contains(element))) return true;
  }
  return false;
}
