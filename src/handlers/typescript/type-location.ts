import type ts from "typescript-6";

/** The position of a type in a signature. */
export interface TypeLocation {
  /** For messages: `order.items[].price`. */
  readonly path: string;
  /** As a JSON pointer, with `*` for each item: `/order/items/*`. */
  readonly pointer: string;
  readonly node: ts.Node;
}

/** A problem of one type, without file and line. */
export interface Refusal {
  readonly location: TypeLocation;
  readonly message: string;
  readonly fix: string;
}

/** Items of an array from some index on, which a pointer cannot express. */
export const LATER_ITEMS = "-";

export function locationBelow(location: TypeLocation, step: { key: string; node?: ts.Node | undefined }): TypeLocation {
  const isItem = step.key === "*" || step.key === LATER_ITEMS;
  const name = /^[\w$]+$/.test(step.key) ? `.${step.key}` : `[${JSON.stringify(step.key)}]`;
  return {
    path: isItem ? `${location.path}[]` : `${location.path}${name}`.replace(/^\./, ""),
    pointer: `${location.pointer}/${step.key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
    node: step.node ?? location.node,
  };
}
