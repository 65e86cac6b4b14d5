export type Colour = readonly [red: number, green: number, blue: number];

export interface Paint {
  readonly colour: Colour;
  readonly alpha: number;
}

const known = new Map<string, Paint | undefined>();

/** A colour of a computed style; `undefined` when it is not known. */
export function paintOf(text: string): Paint | undefined {
  if (!known.has(text)) known.set(text, fromRgb(text) ?? fromCanvas(text));
  return known.get(text);
}

function fromRgb(text: string): Paint | undefined {
  const match = /^rgba?\((\d+),\s*(\d+),\s*(\d+)(?:,\s*([\d.]+))?\)$/.exec(text);
  if (match === null) return undefined;
  const alpha = match[4] === undefined ? 1 : Number(match[4]);
  return { colour: [Number(match[1]), Number(match[2]), Number(match[3])], alpha };
}

const canvas = new OffscreenCanvas(1, 1);

/** The fill of a canvas does not change when it is set to an unknown colour. */
const UNTOUCHED = "#123456";

/** `oklch()`, `lab()`, `color()` and others are not converted in computed styles. A canvas converts them. */
function fromCanvas(text: string): Paint | undefined {
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return undefined;
  context.fillStyle = UNTOUCHED;
  context.fillStyle = text;
  if (context.fillStyle === UNTOUCHED) return undefined;
  context.clearRect(0, 0, 1, 1);
  context.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0, alpha = 0] = context.getImageData(0, 0, 1, 1).data;
  return { colour: [red, green, blue], alpha: alpha / 255 };
}

/** The visible colour of a translucent paint on a background. */
export function mixed({ colour, alpha }: Paint, behind: Colour): Colour {
  const channel = (index: 0 | 1 | 2): number => colour[index] * alpha + behind[index] * (1 - alpha);
  return [channel(0), channel(1), channel(2)];
}

/** The visible colour of a solid colour that is blended with its background. A canvas has the same blend modes as styles. */
export function blended(mode: string, colour: Colour, behind: Colour): Colour {
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return colour;
  const paint = (operation: GlobalCompositeOperation, [red, green, blue]: Colour): void => {
    context.globalCompositeOperation = "source-over";
    context.globalCompositeOperation = operation;
    context.fillStyle = `rgb(${red} ${green} ${blue})`;
    context.fillRect(0, 0, 1, 1);
  };
  paint("source-over", behind);
  // oxlint-disable-next-line typescript/consistent-type-assertions -- a canvas keeps what it has when it does not know an operation
  paint((mode === "plus-lighter" ? "lighter" : mode) as GlobalCompositeOperation, colour);
  const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
  context.globalCompositeOperation = "source-over";
  return [red, green, blue];
}

/** The paints of a shape or text in an SVG; an `undefined` entry is not known. */
export function svgPaints(element: SVGElement, style: CSSStyleDeclaration): (Paint | undefined)[] {
  const stroke = Number.parseFloat(style.strokeWidth) > 0 ? paintsOf(element, style.stroke, style.strokeOpacity) : [];
  return [...paintsOf(element, style.fill, style.fillOpacity), ...stroke];
}

function paintsOf(element: SVGElement, paint: string, opacity: string): (Paint | undefined)[] {
  if (paint === "none") return [];
  const server = /^url\("#(.*?)"\)/.exec(paint)?.[1];
  const paints = server === undefined ? [paintOf(paint)] : serverPaints(element, server);
  return paints.map((one) => (one === undefined ? one : { ...one, alpha: one.alpha * Number(opacity) }));
}

/** Colours of a gradient. A missing gradient paints nothing. */
function serverPaints(element: SVGElement, id: string): (Paint | undefined)[] {
  const root = element.getRootNode();
  const server = (root instanceof ShadowRoot ? root : document).getElementById(id);
  if (server === null) return [];
  const stops = server instanceof SVGGradientElement ? [...server.querySelectorAll("stop")] : [];
  if (stops.length === 0) return [undefined];
  return stops.map((stop) => {
    const style = getComputedStyle(stop);
    const paint = paintOf(style.stopColor);
    return paint === undefined ? paint : { ...paint, alpha: paint.alpha * Number(style.stopOpacity) };
  });
}

interface Shape {
  readonly element: SVGGraphicsElement;
  readonly box: DOMRect;
}

const NOT_DRAWN = "defs, clipPath, mask, pattern, marker, symbol";

/** The shapes of one SVG, which may be behind text. */
export class SvgShapes {
  readonly #root: SVGSVGElement;
  #shapes: readonly Shape[] | undefined;

  constructor(root: SVGSVGElement) {
    this.#root = root;
  }

  /** The colour behind a text; `undefined` when it is not known. */
  behind(text: Element, box: DOMRect, outer: Colour | undefined): Colour | undefined {
    this.#shapes ??= shapesOf(this.#root);
    const place = new DOMPoint(box.left + box.width / 2, box.top + box.height / 2);
    let behind = outer;
    for (const { element, box: own } of this.#shapes) {
      if (place.x < own.left || place.x > own.right || place.y < own.top || place.y > own.bottom) continue;
      if ((text.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING) === 0) break;
      behind = withShape(element, place, behind);
    }
    return behind;
  }
}

function shapesOf(root: SVGSVGElement): Shape[] {
  return [...root.querySelectorAll("*")]
    .filter((element) => element instanceof SVGGeometryElement || isPicture(element))
    .filter((element) => element.closest(NOT_DRAWN) === null)
    .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
    .map((element) => ({ element, box: element.getBoundingClientRect() }));
}

function isPicture(element: Element): element is SVGGraphicsElement {
  return element instanceof SVGImageElement || element instanceof SVGUseElement;
}

function withShape(element: SVGGraphicsElement, place: DOMPoint, behind: Colour | undefined): Colour | undefined {
  if (!(element instanceof SVGGeometryElement)) return undefined;
  const matrix = element.getScreenCTM();
  if (matrix === null || !element.isPointInFill(place.matrixTransform(matrix.inverse()))) return behind;
  const style = getComputedStyle(element);
  const [fill, ...others] = paintsOf(element, style.fill, String(Number(style.fillOpacity) * Number(style.opacity)));
  if (fill === undefined || others.length > 0) return style.fill === "none" ? behind : undefined;
  if (fill.alpha === 1) return fill.colour;
  return behind === undefined ? undefined : mixed(fill, behind);
}
