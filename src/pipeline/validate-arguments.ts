import { badArguments } from "../capabilities/bad-arguments.ts";
import type { Tool } from "../capabilities/registry.ts";

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
