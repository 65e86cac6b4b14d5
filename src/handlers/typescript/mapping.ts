import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";

/** Where in a signature a type stands: for messages, for dates, and to find the line. */
export interface TypeLocation {
  /** As an author would write it: `order.items[].price`. */
  readonly path: string;
  /** As a JSON pointer, `*` for each item: `/order/items/*`. */
  readonly pointer: string;
  readonly node: ts.Node;
}

/** What is wrong with one type, before file and line are known. */
export interface Refusal {
  readonly place: TypeLocation;
  readonly message: string;
  readonly fix: string;
}

/** What the parts of the translation share. `toSchema` leads back to the whole, so that the parts need not import each other. */
export interface Mapping {
  readonly checker: ts.TypeChecker;
  readonly program: ts.Program;
  /** Input is closed (unknown fields are mistakes); output is open (a function may return more than its type says). */
  readonly side: "input" | "output";
  toSchema(type: ts.Type, place: TypeLocation): JsonSchema;
  refuse(refusal: Refusal): JsonSchema;
  /** A Date arrives as text: remembers where, so that it is made a Date before the call. */
  addDate(place: TypeLocation): void;
}

/** Items of an array from some index on: a pointer has no way to say it. */
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
