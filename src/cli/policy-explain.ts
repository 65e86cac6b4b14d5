import { explain, type Explanation } from "../governance/explain.ts";
import type { CommandCall } from "./command-action.ts";
import { textFlag, withPolicy } from "./policy-session.ts";
import { UsageError } from "./usage-error.ts";

export async function policyExplainCommand(call: CommandCall): Promise<number> {
  const { terminal, flags, args } = call;
  const explanation = await withPolicy(call, textFlag(flags["policy"]), async ({ policy, server }) =>
    explain(policy, {
      client: textFlag(flags["client"]) ?? "",
      groups: Array.isArray(flags["group"]) ? flags["group"].map(String) : [],
      claims: {},
      label: textFlag(flags["label"]),
      subject: server.subjectNamed(textFlag(flags["tool"]) ?? ""),
      args: parseArguments(args[0] ?? "{}"),
    }),
  );
  terminal.out(flags["json"] === true ? `${JSON.stringify(explanation, null, 2)}\n` : render(explanation));
  return explanation.decision === "deny" ? 1 : 0;
}

function render({
  policy,
  operation,
  decision,
  rule,
  reason,
  visible,
  confirm,
  limits,
  reserves,
}: Explanation): string {
  const lines = [
    `${decision}  ${operation}`,
    `rule      ${rule}`,
    ...(reason === undefined ? [] : [`reason    ${reason}`]),
    `listed    ${visible ? "yes" : "no"}`,
    ...(confirm === undefined ? [] : [`confirm   ${confirm}`]),
    ...(reserves === 0 ? [] : [`reserves  ${reserves}`]),
    ...limits.map(({ rule: of, limit, counts }) => `limit     ${limit}  ${of}  ${counts}`),
    `policy    ${policy}`,
  ];
  return `${lines.join("\n")}\n`;
}

function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`the arguments are not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
