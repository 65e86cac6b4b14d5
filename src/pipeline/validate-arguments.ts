import type { Tool } from "../capabilities/registry.ts";
import type { CompiledSchema, SchemaIssue } from "../capabilities/schema.ts";
import { OwlError, type OwlErrorOptions } from "../errors/owl-error.ts";

/** The arguments as the tool's schema understands them, defaults filled in. May be synchronous: most schemas are. */
export function validateArguments(tool: Tool, args: unknown): unknown {
  const verdict = tool.input.check(args);
  if (verdict instanceof Promise) {
    return verdict.then((settled) => {
      if (settled.ok) return settled.value;
      throw badArguments(tool, settled.issues);
    });
  }
  if (verdict.ok) return verdict.value;
  throw badArguments(tool, verdict.issues);
}

export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

function badArguments(tool: Tool, issues: readonly SchemaIssue[]): OwlError {
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
