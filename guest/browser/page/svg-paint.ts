import { type Colour, mixed, type Paint, paintOf } from "./colours.ts";

/** What a shape or text of a drawing is painted with; nothing in the list where that is not known. */
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

/** Colours of a gradient. One that is not there paints nothing. */
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

/** The shapes of one drawing, which text may stand on. */
export class SvgShapes {
  readonly #root: SVGSVGElement;
  #shapes: readonly Shape[] | undefined;

  constructor(root: SVGSVGElement) {
    this.#root = root;
  }

  /** The colour behind a text; nothing where it cannot be told. */
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
