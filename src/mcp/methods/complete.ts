import type { Completer } from "../../capability/define.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { quotaMeta } from "../request-envelope.ts";

const MAX_VALUES = 100;

export interface CompleteParams {
  readonly ref:
    | { readonly type: "ref/prompt"; readonly name: string }
    | { readonly type: "ref/resource"; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  readonly context?: { readonly arguments?: Readonly<Record<string, string>> | undefined } | undefined;
}

/** Suggestions for one argument; none when it has no completer. */
export async function complete(
  mcp: Mcp,
  { ref, argument, context }: CompleteParams,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { view } = mcp.pipeline;
  const others = context?.arguments ?? {};
  const request = {
    subject: view.subjectOfReference(ref),
    argument: argument.name,
    value: argument.value,
    others,
    find: () => findCompleter(mcp, ref, argument.name),
    isOpen: (value: string) => view.seesCompleted(ref, { ...others, [argument.name]: value }, exchange.caller),
  };
  const { value: all, quota } = await mcp.pipeline.complete(request, exchange);
  const values = all.slice(0, MAX_VALUES);
  return { completion: { values, total: all.length, hasMore: all.length > values.length }, ...quotaMeta(quota) };
}

function findCompleter(
  { pipeline: { registry } }: Mcp,
  ref: CompleteParams["ref"],
  argument: string,
): Completer | undefined {
  if (ref.type === "ref/prompt") {
    const prompt = registry.prompt(ref.name);
    if (prompt === undefined)
      throw new OwlError("prompt_not_found", `there is no prompt named "${ref.name.slice(0, 128)}"`);
    return ownCompleter(prompt.definition.complete, argument);
  }
  const resource = registry.template(ref.uri) ?? registry.findResource(ref.uri)?.resource;
  if (resource === undefined)
    throw new OwlError("resource_not_found", `there is no resource template "${ref.uri.slice(0, 256)}"`);
  return ownCompleter(resource.definition.complete, argument);
}

function ownCompleter(
  completers: Readonly<Record<string, Completer>> | undefined,
  name: string,
): Completer | undefined {
  return completers !== undefined && Object.hasOwn(completers, name) ? completers[name] : undefined;
}
