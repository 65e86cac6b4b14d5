/** Whether the element shows its back, which is not drawn. */
export function isTurnedAway(element: Element, style: CSSStyleDeclaration): boolean {
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

const AXES: Readonly<Record<string, string>> = { x: "1, 0, 0", y: "0, 1, 0", z: "0, 0, 1" };

/** How things move and grow does not turn them. What is not drawn has no matrix, and is not turned. */
function matrixOf({ rotate, transform }: CSSStyleDeclaration): DOMMatrix {
  const own = new DOMMatrix(transform.startsWith("matrix") ? transform : "");
  if (rotate === "none") return own;
  const parts = rotate.split(" ");
  const angle = parts.pop() ?? "0deg";
  const [axis = "z"] = parts;
  return new DOMMatrix(`rotate3d(${AXES[axis] ?? parts.join(", ")}, ${angle})`).multiply(own);
}
