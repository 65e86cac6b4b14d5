import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { parseDocument } from "yaml";
import type { DeepReadonly } from "../../config/deep-freeze.ts";
import { type PolicyConfig, policySchema } from "../../config/governance-schema.ts";
import { PolicyError } from "./terms.ts";
import type { Principal } from "../../auth/principal.ts";
import { FREE, type Subject } from "../subject.ts";
import type { AskerPolicy } from "./asker-policy.ts";
import type { Policy } from "./policy.ts";

const MAX_FILE_BYTES = 1024 * 1024;
/** Aliases that refer to aliases can expand exponentially. */
const MAX_ALIASES = 20;

/**
 * The policy of a file, which overrides the configuration. Symbolic links are followed: containers swap files that way.
 */
export async function readPolicyFile(file: string, base: DeepReadonly<PolicyConfig>): Promise<PolicyConfig> {
  return parsePolicy(await readBounded(file), base);
}

/** @throws PolicyError with every problem. */
export function parsePolicy(text: string, base: DeepReadonly<PolicyConfig>): PolicyConfig {
  const document = parseDocument(text, { uniqueKeys: true, strict: true, merge: false, prettyErrors: true });
  const problems = [...document.errors, ...document.warnings].map(({ message }) => message.split("\n", 1)[0] ?? "");
  if (problems.length > 0) throw new PolicyError(problems);
  const tree = toTree(() => document.toJS({ maxAliasCount: MAX_ALIASES }));
  const defaults = { ...base.defaults, ...(isObject(tree["defaults"]) ? tree["defaults"] : {}) };
  const whole = tree["defaults"] === undefined || isObject(tree["defaults"]) ? { ...tree, defaults } : tree;
  return checked({ ...base, ...whole });
}

export function checked(value: unknown): PolicyConfig {
  const verdict = policySchema.safeParse(value);
  if (verdict.success) return verdict.data;
  throw new PolicyError(
    verdict.error.issues.map(({ path, message }) => `${path.length === 0 ? "the policy" : path.join(".")}: ${message}`),
  );
}

function toTree(read: () => unknown): Record<string, unknown> {
  let value: unknown;
  try {
    value = read();
  } catch {
    throw new PolicyError(["it has too many aliases, or aliases that do not resolve: write the values out"]);
  }
  if (!isObject(value)) throw new PolicyError(["it must hold keys such as defaults, clients, tools and rules"]);
  return value;
}

async function readBounded(file: string): Promise<string> {
  // Without O_NONBLOCK, opening a named pipe at this path would block the server.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(unreadable);
  try {
    if (!(await handle.stat()).isFile()) throw new PolicyError([`${file} is not a file`]);
    const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length > MAX_FILE_BYTES) throw new PolicyError([`${file} is larger than ${MAX_FILE_BYTES} bytes`]);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(buffer.subarray(0, length));
  } catch (error) {
    throw error instanceof PolicyError ? error : new PolicyError([`${file} is not UTF-8 text`]);
  } finally {
    await handle.close();
  }
}

function unreadable(error: unknown): never {
  throw new PolicyError([`it cannot be read: ${error instanceof Error ? error.message : String(error)}`]);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const SHELL = execution("shell_exec", ["shell.exec", "execute_command"]);
const CODE = execution("code_run", ["code.exec", "execute_code"]);

/** Warns of policies that enforce less than they seem to. */
export function policyWarnings(policy: Policy): readonly string[] {
  return [...hollowDenials(policy), ...openEndedPrices(policy)];
}

/** The cost of traffic is not known in advance: concurrent calls may exceed the budget together. */
function openEndedPrices({ config }: Policy): readonly string[] {
  const { defaults, groups, clients, labels, tools } = config;
  const layers = [defaults, ...[groups, clients, labels].flatMap((named) => Object.values(named))];
  if (!layers.some(({ monthlyBudget = 0 }) => monthlyBudget > 0)) return [];
  return Object.entries(tools)
    .filter(([, { cost, maxCost }]) => maxCost === undefined && typeof cost === "object" && (cost.perEgressMb ?? 0) > 0)
    .map(
      ([glob]) =>
        `tools.${glob} has a price for the network and no maxCost: calls at the same time may pass a monthlyBudget together, ` +
        "so say what one of them may cost at most",
    );
}

/** A caller that can run code can run a shell. */
function hollowDenials(policy: Policy): readonly string[] {
  const { clients, groups, groupsClaim } = policy.config;
  const askers: readonly (readonly [string, Principal])[] = [
    ["everybody", somebody("", {})],
    ...Object.keys(groups).map((group) => [`the group "${group}"`, somebody("", { [groupsClaim]: [group] })] as const),
    ...Object.keys(clients).map((client) => [`the client "${client}"`, somebody(client, {})] as const),
  ];
  const [[, everybody] = ["", somebody("", {})], ...others] = askers;
  if (isHollow(policy.for({ principal: everybody, label: undefined }))) return [warning("everybody")];
  return others
    .filter(([, principal]) => isHollow(policy.for({ principal, label: undefined })))
    .map(([who]) => warning(who));
}

function warning(who: string): string {
  return `shell_exec is refused to ${who} and code_run is not: code can start a shell, so refuse both or neither`;
}

function isHollow(policy: AskerPolicy): boolean {
  return isRefused(policy, SHELL) && !isRefused(policy, CODE);
}

function isRefused(policy: AskerPolicy, subject: Subject): boolean {
  const { hidden, denied } = policy.termsOf(subject);
  if (hidden !== undefined || denied !== undefined) return true;
  // A rule that reads arguments refuses some calls, not the tool.
  const { verdict, lookedAt } = policy.judgeWatched(subject, {});
  return verdict?.effect === "deny" && !lookedAt.has("args");
}

function somebody(id: string, claims: Readonly<Record<string, unknown>>): Principal {
  return { id, scopes: [], claims };
}

function execution(name: string, aliases: readonly string[]): Subject {
  const names = [name, ...aliases];
  return { kind: "tool", name, names, scope: "exec", price: FREE, confirm: undefined, timeoutMs: 0 };
}
