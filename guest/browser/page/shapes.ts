import { type Area, intersection } from "./clipping.ts";

const TERM = /([+-]?[\d.]+)(px|%)/g;

/** One axis of a box: its start, its length, and the scale of a pixel. */
interface Side {
  readonly start: number;
  readonly length: number;
  readonly scale: number;
}

interface Sides {
  readonly x: Side;
  readonly y: Side;
}

/** The bounding box of what `clip-path` and `clip` leave of an element; `undefined` when it is not clipped or not known. */
export function shapeOf(element: Element, style: CSSStyleDeclaration): Area | undefined {
  const { clipPath, position } = style;
  // `clip` applies only to positioned elements.
  const clip = position === "absolute" || position === "fixed" ? style.clip : "auto";
  if (clipPath === "none" && clip === "auto") return undefined;
  const sides = sidesOf(element);
  const path = clipPath === "none" ? undefined : pathArea(clipPath, sides);
  const rect = clip === "auto" ? undefined : rectArea(clip, sides);
  return path !== undefined && rect !== undefined ? intersection(path, rect) : (path ?? rect);
}

/** Lengths in styles are before scaling. */
function sidesOf(element: Element): Sides {
  const { left, top, width, height } = element.getBoundingClientRect();
  const [plainWidth, plainHeight] =
    element instanceof HTMLElement ? [element.offsetWidth, element.offsetHeight] : [width, height];
  return {
    x: { start: left, length: width, scale: plainWidth === 0 ? 1 : width / plainWidth },
    y: { start: top, length: height, scale: plainHeight === 0 ? 1 : height / plainHeight },
  };
}

function pathArea(clipPath: string, sides: Sides): Area | undefined {
  const [, kind, inside = ""] = /^(inset|circle|ellipse|polygon)\((.*)\)(?: [a-z-]+)?$/.exec(clipPath) ?? [];
  if (kind === "inset") return insetArea(inside, sides);
  if (kind === "polygon") return polygonArea(inside, sides);
  return kind === undefined ? undefined : roundArea({ kind, inside }, sides);
}

function insetArea(inside: string, { x, y }: Sides): Area | undefined {
  const [top = "", right = top, bottom = top, left = right] = words(inside.replace(/ round .*$/, ""));
  return checked({
    left: x.start + toPx(left, x),
    top: y.start + toPx(top, y),
    right: x.start + x.length - toPx(right, x),
    bottom: y.start + y.length - toPx(bottom, y),
  });
}

function polygonArea(inside: string, { x, y }: Sides): Area | undefined {
  const corners = inside
    .split(",")
    .map(words)
    .filter(([word]) => word !== "evenodd" && word !== "nonzero");
  const across = corners.map(([word = ""]) => x.start + toPx(word, x));
  const down = corners.map(([, word = ""]) => y.start + toPx(word, y));
  return checked({ left: least(across), top: least(down), right: most(across), bottom: most(down) });
}

/** A polygon can have more corners than a call can have arguments. */
function least(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => Math.min(one, other), Infinity);
}

function most(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => Math.max(one, other), -Infinity);
}

/** Without a radius, circle and ellipse reach the closest side. */
function roundArea({ kind, inside }: { kind: string; inside: string }, { x, y }: Sides): Area | undefined {
  const [sizes = "", centre = ""] = inside.split(/(?:^| )at /);
  const [across = "50%", down = "50%"] = words(centre);
  const [centreX, centreY] = [toPx(across, x), toPx(down, y)];
  const reaches = [reachesFrom(centreX, x), reachesFrom(centreY, y)] as const;
  const [first, second = first] = words(sizes);
  const diagonal = { ...x, length: Math.hypot(x.length, y.length) / Math.SQRT2 };
  const [radiusX, radiusY] =
    kind === "ellipse"
      ? [toRadius(first, reaches[0], x), toRadius(second, reaches[1], y)]
      : [toRadius(first, reaches.flat(), diagonal), toRadius(first, reaches.flat(), diagonal)];
  return checked({
    left: x.start + centreX - radiusX,
    top: y.start + centreY - radiusY,
    right: x.start + centreX + radiusX,
    bottom: y.start + centreY + radiusY,
  });
}

function reachesFrom(centre: number, { length }: Side): number[] {
  return [Math.abs(centre), Math.abs(length - centre)];
}

function toRadius(radius: string | undefined, reaches: readonly number[], side: Side): number {
  if (radius === undefined || radius === "closest-side") return least(reaches);
  return radius === "farthest-side" ? most(reaches) : toPx(radius, side);
}

/** `rect()` measures from the left and the top. */
function rectArea(clip: string, { x, y }: Sides): Area | undefined {
  const edges = /^rect\((.*)\)$/.exec(clip)?.[1]?.split(/,? /) ?? [];
  const [top = "", right = "", bottom = "", left = ""] = edges;
  const from = (edge: string, side: Side): number => side.start + (edge === "auto" ? 0 : toPx(edge, side));
  const to = (edge: string, side: Side): number => side.start + (edge === "auto" ? side.length : toPx(edge, side));
  return checked({ left: from(left, x), top: from(top, y), right: to(right, x), bottom: to(bottom, y) });
}

function words(text: string): string[] {
  return text.match(/calc\([^()]*\)|\S+/g) ?? [];
}

/** `5px`, `50%` and `calc(100% - 5px)`. Other lengths are not known. */
function toPx(text: string, { length, scale }: Side): number {
  const sum = text.replace(/^calc\((.*)\)$/, "$1").replaceAll(" ", "");
  const terms = [...sum.matchAll(TERM)];
  if (sum === "" || terms.map(([term]) => term).join("") !== sum) return Number.NaN;
  return terms.reduce((total, [, number, unit]) => total + Number(number) * (unit === "%" ? length / 100 : scale), 0);
}

function checked(area: Area): Area | undefined {
  return Object.values(area).every(Number.isFinite) ? area : undefined;
}
