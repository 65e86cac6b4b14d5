/** A rectangle in pixels of the window at its current scroll position. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** The area in which the content of an element is visible, limited by clipping ancestors that cannot be scrolled. */
export interface Clips {
  readonly inFlow: Area;
  /** Positioned elements are not clipped by ancestors that are not positioned. Computed lazily: most of a page needs it never. */
  readonly absolute: () => Area;
  /** Both areas are the same. */
  readonly isOne: boolean;
}

/** A page can be scrolled to its end, but not before its start. Horizontal scrolling may be disabled. */
export function pageClips(root: CSSStyleDeclaration, body: CSSStyleDeclaration): Clips {
  const sideways = root.overflowX === "visible" ? body.overflowX : root.overflowX;
  const isBounded = sideways === "hidden" || sideways === "clip";
  const isFromRight = root.direction === "rtl" || body.direction === "rtl";
  const left = isFromRight && !isBounded ? -Infinity : -scrollX;
  const right = isFromRight || isBounded ? innerWidth - scrollX : Infinity;
  return oneClip({ left, top: -scrollY, right, bottom: Infinity });
}

/** The area in which the element itself is visible. A fixed element does not scroll. */
export function areaOf({ position }: CSSStyleDeclaration, outer: Clips): Area {
  if (position === "fixed") return { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  return position === "absolute" ? outer.absolute() : outer.inFlow;
}

/** `isBox`: it clips its content. */
export function clipsWithin(
  element: Element,
  style: CSSStyleDeclaration,
  { outer, isBox }: { readonly outer: Clips; readonly isBox: boolean },
): Clips {
  const around = areaOf(style, outer);
  const inFlow = isBox ? clippedBy(element, style, around) : around;
  if (outer.isOne && inFlow === outer.inFlow) return outer;
  if (style.position !== "static") return oneClip(inFlow);
  let known: Area | undefined;
  const absolute = (): Area => (known ??= holdsPositioned(style) ? inFlow : outer.absolute());
  return { inFlow, absolute, isOne: false };
}

function oneClip(area: Area): Clips {
  return { inFlow: area, absolute: () => area, isOne: true };
}

/** A shape clips all of its content, also positioned elements. */
export function cutBy(shape: Area | undefined, clips: Clips): Clips {
  if (shape === undefined) return clips;
  const { inFlow, absolute, isOne } = clips;
  return { inFlow: intersection(inFlow, shape), absolute: () => intersection(absolute(), shape), isOne };
}

export function intersection(one: Area, other: Area): Area {
  return {
    left: Math.max(one.left, other.left),
    top: Math.max(one.top, other.top),
    right: Math.min(one.right, other.right),
    bottom: Math.min(one.bottom, other.bottom),
  };
}

const ROUNDING = 0.01;

/** Whether less than the minimum of the box is in the area. A box without a size may contain larger elements. */
export function isOutside(box: DOMRect, area: Area, leastPx: number): boolean {
  const width = Math.min(box.right, area.right) - Math.max(box.left, area.left);
  const height = Math.min(box.bottom, area.bottom) - Math.max(box.top, area.top);
  return width < Math.min(leastPx, box.width) - ROUNDING || height < Math.min(leastPx, box.height) - ROUNDING;
}

const NOT_CLIPPED = /^(?:inline|contents|ruby.*|table-(?:row|header|footer|column).*)$/;

/** The viewport can be scrolled, also when only scripts do it. */
export function isClipping(element: Element, style: CSSStyleDeclaration): boolean {
  if (style.overflow === "visible" && !isPaintContained(style)) return false;
  if (NOT_CLIPPED.test(style.display)) return false;
  return element !== document.body && element !== document.documentElement;
}

function isPaintContained({ contain }: CSSStyleDeclaration): boolean {
  return contain !== "none" && /paint|content|strict/.test(contain);
}

function clippedBy(element: Element, style: CSSStyleDeclaration, around: Area): Area {
  const box = element.getBoundingClientRect();
  const isContained = isPaintContained(style);
  const isAnyWay = style.direction === "rtl" || style.flexDirection.endsWith("-reverse");
  const x = clipAxis({
    overflow: isContained && style.overflowX === "visible" ? "clip" : style.overflowX,
    around: [around.left, around.right],
    box: [box.left, box.right],
    scrolled: isAnyWay ? Infinity : element.scrollLeft,
  });
  const y = clipAxis({
    overflow: isContained && style.overflowY === "visible" ? "clip" : style.overflowY,
    around: [around.top, around.bottom],
    box: [box.top, box.bottom],
    scrolled: isAnyWay ? Infinity : element.scrollTop,
  });
  return { left: x[0], top: y[0], right: x[1], bottom: y[1] };
}

type Span = readonly [from: number, to: number];

interface Axis {
  readonly overflow: string;
  readonly around: Span;
  readonly box: Span;
  /** How far back it can be scrolled. */
  readonly scrolled: number;
}

function clipAxis({ overflow, around, box, scrolled }: Axis): Span {
  if (overflow === "visible") return around;
  if (overflow === "auto" || overflow === "scroll") return [box[0] - scrolled, Infinity];
  return [Math.max(around[0], box[0]), Math.min(around[1], box[1])];
}

function holdsPositioned(style: CSSStyleDeclaration): boolean {
  if (style.transform !== "none" || style.perspective !== "none" || style.filter !== "none") return true;
  return isPaintContained(style) || /transform|perspective|filter/.test(style.willChange);
}
