import { explain, type Explanation } from "../governance/explain.ts";
import type { CommandCall } from "./command-action.ts";
import { textFlag, withPolicy } from "./policy-session.ts";
import { UsageError } from "./usage-error.ts";
import { jsonText } from "./text.ts";

export async function policyExplainCommand(call: CommandCall): Promise<number> {
  const { terminal, flags, args } = call;
  const explanation = await withPolicy(call, textFlag(flags["policy"]), async ({ policy, server }) =>
    explain(policy, {
      client: textFlag(flags["client"]) ?? "",
      groups: Array.isArray(flags["group"]) ? flags["group"].map(String) : [],
      claims: parseClaims(textFlag(flags["claims"]) ?? "{}"),
      label: textFlag(flags["label"]),
      ...(await server.named.call(textFlag(flags["tool"]) ?? "", parseArguments(args[0] ?? "{}"))),
    }),
  );
  terminal.out(flags["json"] === true ? jsonText(explanation) : render(explanation));
  return explanation.decision === "deny" ? 1 : 0;
}

function render({
  policy,
  operation,
  decision,
  rule,
  reason,
  mistake,
  visible,
  confirm,
  limits,
  reserves,
}: Explanation): string {
  const lines = [
    `${decision}  ${operation}`,
    `rule      ${rule}`,
    ...(reason === undefined ? [] : [`reason    ${reason}`]),
    ...(mistake === undefined ? [] : [`mistake   ${mistake}`]),
    `listed    ${visible ? "yes" : "no"}`,
    ...(confirm === undefined ? [] : [`confirm   ${confirm}`]),
    ...(reserves === 0 ? [] : [`reserves  ${reserves}`]),
    ...limits.map(({ rule: of, limit, counts }) => `limit     ${limit}  ${of}  ${counts}`),
    `policy    ${policy}`,
  ];
  return `${lines.join("\n")}\n`;
}

function parseArguments(text: string): unknown {
  return parseJson("the arguments are", text);
}

function parseClaims(text: string): Record<string, unknown> {
  const claims = parseJson("--claims is", text);
  if (typeof claims === "object" && claims !== null && !Array.isArray(claims)) return { ...claims };
  throw new UsageError(`--claims is no JSON object: write --claims '{"level": 3}'`);
}

function parseJson(whatIs: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${whatIs} not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
