/** What an element hands down to what is in it. */
export interface Surroundings {
  /** Nothing below can be seen. */
  readonly isHidden: boolean;
  readonly opacity: number;
  /** It stands still when the page scrolls: what of it is out of view stays so. */
  readonly isFixed: boolean;
  /** The colour behind; nothing where a picture is. */
  readonly background: Colour | undefined;
  readonly cursor: string;
}

export type Colour = readonly [red: number, green: number, blue: number];

const FAINTEST_OPACITY = 0.05;
const SMALLEST_FONT_PX = 4;
const SMALLEST_BOX_PX = 1;
const FAR_INDENT_PX = -500;
/** Channels that differ by less are one colour to the eye. */
const SAME_COLOUR = 12;
const SOLID = 0.9;

export function canvasSurroundings(): Surroundings {
  return { isHidden: false, opacity: 1, isFixed: false, background: [255, 255, 255], cursor: "auto" };
}

/** For an element that is displayed. */
export function surroundingsWithin(element: Element, style: CSSStyleDeclaration, outer: Surroundings): Surroundings {
  const opacity = outer.opacity * Number(style.opacity) * filteredOpacity(style.filter);
  const isSkipped = style.contentVisibility === "hidden";
  const isHidden = outer.isHidden || isSkipped || opacity < FAINTEST_OPACITY || isClippedAway(element, style);
  const isFixed = outer.isFixed || style.position === "fixed";
  return { isHidden, opacity, isFixed, background: backgroundOf(style, outer.background), cursor: style.cursor };
}

function filteredOpacity(filter: string): number {
  if (filter === "none") return 1;
  return [...filter.matchAll(/\bopacity\(([\d.]+)\)/g)].reduce((product, [, factor]) => product * Number(factor), 1);
}

/** A shape without an area: a circle of no radius, or corners that all stand on one line. */
function isEmptyShape(clipPath: string): boolean {
  if (clipPath === "none") return false;
  if (/^inset\((?:50|100)%/.test(clipPath) || /^(?:circle|ellipse)\((?:0px|0%)/.test(clipPath)) return true;
  const corners = /^polygon\(([^()]*)\)$/
    .exec(clipPath)?.[1]
    ?.split(",")
    .map((corner) => corner.trim().split(/\s+/));
  if (corners === undefined) return false;
  return [0, 1].some((axis) => new Set(corners.map((corner) => corner[axis])).size === 1);
}

function isClippedAway(element: Element, style: CSSStyleDeclaration): boolean {
  if (isEmptyShape(style.clipPath)) return true;
  if (style.clip !== "auto" && /^rect\((?:0|1)px,? (?:0|1)px,? (?:0|1)px,? (?:0|1)px\)$/.test(style.clip)) return true;
  if (style.overflowX === "visible" || style.display.startsWith("inline") || element === document.body) return false;
  if (element === document.documentElement) return false;
  const { width, height } = element.getBoundingClientRect();
  return width <= SMALLEST_BOX_PX || height <= SMALLEST_BOX_PX;
}

function backgroundOf(style: CSSStyleDeclaration, outer: Colour | undefined): Colour | undefined {
  if (style.backgroundImage !== "none") return undefined;
  const own = parseColour(style.backgroundColor);
  if (own === undefined || own.alpha === 0) return outer;
  return own.alpha >= SOLID ? own.colour : undefined;
}

/** Whether a text of an element can be seen where it stands. */
export function isTextHidden(text: Text, style: CSSStyleDeclaration, around: Surroundings): boolean {
  if (around.isHidden || style.visibility !== "visible") return true;
  if (Number.parseFloat(style.fontSize) < SMALLEST_FONT_PX) return true;
  if (Number.parseFloat(style.textIndent) < FAR_INDENT_PX) return true;
  const box = boxOf(text);
  if (box.width === 0 || box.height < SMALLEST_FONT_PX) return true;
  if (box.right + scrollX <= 0 || box.bottom + scrollY <= 0) return true;
  if (around.isFixed && isOutOfView(box)) return true;
  return isColouredAway(style, around.background) && !isOnPicture(box);
}

function isOutOfView({ left, right, top, bottom }: DOMRect): boolean {
  return right <= 0 || bottom <= 0 || left >= innerWidth || top >= innerHeight;
}

const range = document.createRange();

function boxOf(text: Text): DOMRect {
  range.selectNodeContents(text);
  return range.getBoundingClientRect();
}

function isColouredAway(style: CSSStyleDeclaration, background: Colour | undefined): boolean {
  const own = parseColour(style.webkitTextFillColor);
  if (own === undefined) return false;
  if (own.alpha < FAINTEST_OPACITY) return style.backgroundClip !== "text";
  if (background === undefined || style.textShadow !== "none") return false;
  return own.colour.every((channel, index) => Math.abs(channel - (background[index] ?? 0)) < SAME_COLOUR);
}

/** White letters on a photograph have the colour of the page behind it. */
function isOnPicture(box: DOMRect): boolean {
  const x = box.left + box.width / 2;
  const y = box.top + box.height / 2;
  for (const picture of document.querySelectorAll("img, video, canvas, svg, picture")) {
    const { left, right, top, bottom } = picture.getBoundingClientRect();
    if (left <= x && x <= right && top <= y && y <= bottom) return true;
  }
  return false;
}

const colours = new Map<string, { readonly colour: Colour; readonly alpha: number } | undefined>();

function parseColour(text: string): { readonly colour: Colour; readonly alpha: number } | undefined {
  const known = colours.get(text);
  if (known !== undefined || colours.has(text)) return known;
  const match = /^rgba?\((\d+),\s*(\d+),\s*(\d+)(?:,\s*([\d.]+))?\)$/.exec(text);
  const parsed =
    match === null
      ? undefined
      : {
          colour: [Number(match[1]), Number(match[2]), Number(match[3])] as const,
          alpha: match[4] === undefined ? 1 : Number(match[4]),
        };
  colours.set(text, parsed);
  return parsed;
}
