import { OwlError, type OwlErrorOptions } from "../errors/owl-error.ts";
import type { Tool } from "./registry.ts";
import type { CompiledSchema, SchemaIssue } from "./schema.ts";

export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

export function badArguments(tool: Pick<Tool, "name" | "input">, issues: readonly SchemaIssue[]): OwlError {
  const known = propertyNames(tool.input);
  const options: OwlErrorOptions = {
    facts: { issues },
    hint:
      known.length === 0
        ? "this tool takes no arguments: remove them and call it again"
        : `the arguments are ${known.join(", ")}; correct the ones named above and call it again`,
  };
  return new OwlError("invalid_arguments", `invalid arguments for "${tool.name}": ${describeIssues(issues)}`, options);
}

function propertyNames(schema: CompiledSchema): readonly string[] {
  const properties = schema.json["properties"];
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}
