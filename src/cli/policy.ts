import * as z from "zod";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import { PolicyError } from "../governance/policy/terms.ts";
import type { Policy } from "../governance/policy/policy.ts";
import type { LocalServer } from "../server/local-client.ts";
import { type CommandCall, UsageError } from "./command.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { explain, type Explanation } from "../governance/explain.ts";
import { jsonText } from "./text.ts";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";

export interface PolicySession {
  readonly loaded: LoadedConfig;
  readonly policy: Policy;
  readonly server: Pick<LocalServer, "named">;
}

/** Loads the policy and the tools that it refers to. It starts no server and records nothing. */
export async function withPolicy<T>(
  { terminal, flags }: CommandCall,
  candidate: string | undefined,
  use: (session: PolicySession) => Promise<T>,
): Promise<T> {
  const loaded = await loadConfig(toLoadOptions(flags));
  const { policyOf } = await import("../operator/policy-service.ts");
  const policy = await policyOf(loaded.config, candidate).catch((error: unknown) => {
    throw error instanceof PolicyError ? new UsageError(`the policy cannot be used:\n${error.message}`) : error;
  });
  const { openLocal } = await import("../server/local-client.ts");
  const server = await openLocal({ loaded, logger: quietLogger(loaded, terminal), isGoverned: false });
  try {
    return await use({ loaded, policy, server });
  } finally {
    await server.close();
  }
}

export function textFlag(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

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
