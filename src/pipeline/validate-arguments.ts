import { badArguments, describeIssues } from "../capabilities/bad-arguments.ts";
import type { FoundResource, Prompt, Tool } from "../capabilities/registry.ts";
import { OwlError } from "../errors/owl-error.ts";

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

/** What rules see of a read: the variables of its URI, or what they are as arguments of the tool that gives the same. */
export function argumentsInUri({ resource: { definition }, variables }: FoundResource): unknown {
  return definition.sameAs?.toArgs(variables) ?? variables;
}

export async function validatePromptArguments(prompt: Prompt, args: unknown): Promise<unknown> {
  const verdict = await prompt.arguments?.check(args ?? {});
  if (verdict?.ok !== false) return verdict === undefined ? {} : verdict.value;
  const { name } = prompt.definition;
  throw new OwlError(
    "invalid_params",
    `invalid arguments for the prompt "${name}": ${describeIssues(verdict.issues)}`,
    {
      facts: { issues: verdict.issues },
    },
  );
}
