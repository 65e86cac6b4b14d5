import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";

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
  readonly place: TypeLocation;
  readonly message: string;
  readonly fix: string;
}

/** What the parts of the translation share. `toSchema` avoids imports between the parts. */
export interface Mapping {
  readonly checker: ts.TypeChecker;
  readonly program: ts.Program;
  /** Input is closed: unknown fields are errors. Output is open: a function may return more than its type says. */
  readonly side: "input" | "output";
  toSchema(type: ts.Type, place: TypeLocation): JsonSchema;
  refuse(refusal: Refusal): JsonSchema;
  /** Records a Date field, whose text is converted to a Date before the call. */
  addDate(place: TypeLocation): void;
}

/** Items of an array from some index on, which a pointer cannot express. */
export const LATER_ITEMS = "-";

export function locationBelow(place: TypeLocation, step: { key: string; node?: ts.Node | undefined }): TypeLocation {
  const isItem = step.key === "*" || step.key === LATER_ITEMS;
  const name = /^[\w$]+$/.test(step.key) ? `.${step.key}` : `[${JSON.stringify(step.key)}]`;
  return {
    path: isItem ? `${place.path}[]` : `${place.path}${name}`.replace(/^\./, ""),
    pointer: `${place.pointer}/${step.key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
    node: step.node ?? place.node,
  };
}
