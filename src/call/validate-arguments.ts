import { badArguments, describeIssues } from "../capability/define-tool.ts";
import type { FoundResource, Prompt, Tool } from "../capability/registry.ts";
import { OwlError } from "../errors/owl-error.ts";
import { withSent } from "../governance/policy/terms.ts";

/** The arguments as the tool's schema parses them, with defaults. Synchronous when the schema is, as most are. */
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

/** The arguments of a tool as rules see them: each path in its normalized form, and beside that as it was sent. */
export function judgedArguments({ operation }: Tool, input: unknown): unknown {
  if (operation?.normalize === undefined || !isObject(input)) return input;
  return withSent(operation.normalize(input), input);
}

/** A read as rules see it: the variables of its URI, or these as arguments of the tool that returns the same. */
export function argumentsInUri({ resource: { definition }, variables }: FoundResource): unknown {
  const { sameAs } = definition;
  const sent = sameAs?.toArgs(variables) ?? variables;
  const settled = definition.normalize?.(variables);
  if (settled === undefined) return sent;
  return withSent(sameAs?.toArgs(settled) ?? settled, sent);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
