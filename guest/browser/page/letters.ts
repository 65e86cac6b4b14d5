import { blended, type Colour, mixed, type Paint, paintOf, svgPaints, type SvgShapes } from "./colours.ts";

const WHITE: Colour = [255, 255, 255];
const FAINTEST_OPACITY = 0.05;
const SMALLEST_FONT_PX = 4;
/** Of the size of letters. */
const LARGEST_BLUR = 0.15;
/** Channels that differ by less are one colour to the eye. */
const SAME_COLOUR = 12;
const COLOURS = /\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)/g;

/** What letters are drawn on, and what is done to them. */
export interface Ground {
  /** The colour behind; nothing where a picture is, or it cannot be told. */
  readonly background: Colour | undefined;
  /** What shows through letters that are not solid (`background-clip: text`): nothing in the list where that is not known. */
  readonly through: readonly (Paint | undefined)[];
  readonly blends: readonly Blend[];
  readonly blurPx: number;
  /** Of the drawing around. */
  readonly shapes: SvgShapes | undefined;
}

interface Blend {
  readonly mode: string;
  readonly behind: Colour | undefined;
}

export function groundWithin(element: Element, style: CSSStyleDeclaration, outer: Ground): Ground {
  const { mixBlendMode: mode, filter } = style;
  const painted = paintedWithin(element, style, outer);
  if (mode === "normal" && filter === "none") return painted;
  return {
    ...painted,
    blends: mode === "normal" ? outer.blends : [...outer.blends, { mode, behind: outer.background }],
    blurPx: outer.blurPx + blurOf(filter),
  };
}

/** Each question to a computed style costs: most elements paint nothing. */
function paintedWithin(element: Element, style: CSSStyleDeclaration, outer: Ground): Ground {
  const { backgroundImage } = style;
  const own = backgroundImage === "none" ? paintOf(style.backgroundColor) : undefined;
  if (own?.alpha === 0) return outer;
  // Boxes that are not there are not painted.
  if (style.display === "contents" || isInsideDrawing(element)) return outer;
  if (isClippedToText(style)) return { ...outer, through: paintsThrough(style) };
  return { ...outer, background: own === undefined ? undefined : over(own, outer.background) };
}

function over(paint: Paint, behind: Colour | undefined): Colour | undefined {
  if (paint.alpha === 1) return paint.colour;
  return behind === undefined ? undefined : mixed(paint, behind);
}

export function pageGround(style: CSSStyleDeclaration): Ground {
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

/** Letters that are too small or too blurred to read, or of the colour behind them. */
export function areLettersHidden(element: Element, box: DOMRect, style: CSSStyleDeclaration, ground: Ground): boolean {
  const fontPx = Number.parseFloat(style.fontSize);
  if (fontPx < SMALLEST_FONT_PX || ground.blurPx > fontPx * LARGEST_BLUR) return true;
  const drawn = isInsideDrawing(element) ? svgPaints(element, style) : htmlPaints(style, ground);
  const paints = drawn.filter((paint) => paint === undefined || paint.alpha >= FAINTEST_OPACITY);
  if (paints.length === 0) return true;
  const background = isInsideDrawing(element) ? behindIn(box, element, ground) : ground.background;
  if (background === undefined || style.textShadow !== "none") return false;
  if (!paints.every((paint) => isSame(paint, background, ground.blends))) return false;
  return !isOnPicture(element, box);
}

/** Letters that are solid let nothing through. */
function htmlPaints(style: CSSStyleDeclaration, { through }: Ground): (Paint | undefined)[] {
  const own = paintOf(style.webkitTextFillColor);
  if (own === undefined) return [own];
  const stroke = Number.parseFloat(style.webkitTextStrokeWidth) > 0 ? [paintOf(style.webkitTextStrokeColor)] : [];
  return [own, ...stroke, ...(own.alpha === 1 ? [] : through)];
}

function behindIn(box: DOMRect, element: Element, { background, shapes }: Ground): Colour | undefined {
  return shapes === undefined ? background : shapes.behind(element, box, background);
}

/** Whether a paint cannot be told from what is behind it, as it is or as a blend makes it. */
function isSame(paint: Paint | undefined, background: Colour, blends: readonly Blend[]): boolean {
  if (paint === undefined) return false;
  const letters = mixed(paint, background);
  if (isSameColour(letters, background)) return true;
  return blends.some(({ mode, behind }) => {
    if (behind === undefined) return false;
    const ground = background === behind ? behind : blended(mode, background, behind);
    return isSameColour(blended(mode, letters, behind), ground);
  });
}

function isSameColour(one: Colour, other: Colour): boolean {
  return one.every((channel, index) => Math.abs(channel - (other[index] ?? 0)) < SAME_COLOUR);
}

/** White letters on a photograph have the colour of the page behind it. */
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
