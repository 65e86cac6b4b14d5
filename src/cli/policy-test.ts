import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import * as z from "zod";
import { explain } from "../governance/explain.ts";
import type { CommandCall } from "./command-action.ts";
import { textFlag, withPolicy } from "./policy-session.ts";
import { UsageError } from "./usage-error.ts";
import { jsonText } from "./text.ts";

const expectation = z.strictObject({
  name: z.string().optional(),
  client: z.string(),
  groups: z.array(z.string()).default([]),
  claims: z.record(z.string(), z.unknown()).default({}),
  label: z.string().optional(),
  tool: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
  expect: z.enum(["allow", "deny", "confirm"]),
  rule: z.string().optional(),
});

export async function policyTestCommand(call: CommandCall): Promise<number> {
  const { terminal, flags, args } = call;
  const expectations = await readExpectations(args[0] ?? "");
  const results = await withPolicy(call, textFlag(flags["policy"]), async ({ policy, server }) =>
    Promise.all(
      expectations.map(async (each, index) => {
        const { tool, expect, rule, label, args: given, ...caller } = each;
        const found = explain(policy, { ...caller, label, ...(await server.named.call(tool, given)) });
        const holds = found.decision === expect && (rule === undefined || rule === found.rule);
        return { name: each.name ?? `${index + 1}: ${each.client} calls ${tool}`, holds, expect, rule, found };
      }),
    ),
  );
  const failed = results.filter(({ holds }) => !holds);
  if (flags["json"] === true) terminal.out(jsonText({ results }));
  else {
    for (const { name, holds, expect, rule, found } of results) {
      const wanted = `${expect}${rule === undefined ? "" : ` by ${rule}`}`;
      terminal.out(
        holds ? `ok    ${name}\n` : `FAIL  ${name}: ${wanted} expected, ${found.decision} by ${found.rule}\n`,
      );
    }
    terminal.err(`${results.length - failed.length} of ${results.length} expectations hold.\n`);
  }
  return failed.length === 0 ? 0 : 1;
}

async function readExpectations(file: string): Promise<z.output<typeof expectation>[]> {
  try {
    const content: unknown = parse(await readFile(file, "utf8"), { maxAliasCount: 20 });
    return z.array(expectation).parse(content);
  } catch (error) {
    throw new UsageError(`${file} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  }
}
