import type ts from "typescript-6";
import { isLibraryType } from "./type-guards.ts";

export function isDate(type: ts.Type, program: ts.Program): boolean {
  return type.getSymbol()?.name === "Date" && isLibraryType(type, program);
}
