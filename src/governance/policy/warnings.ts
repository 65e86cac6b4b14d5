import type { Principal } from "../../auth/principal.ts";
import { FREE, type Subject } from "../subject.ts";
import type { AskerPolicy } from "./asker-policy.ts";
import type { Policy } from "./policy.ts";

const SHELL = execution("shell_exec", ["shell.exec", "execute_command"]);
const CODE = execution("code_run", ["code.exec", "execute_code"]);

/** Policies that do less than they seem to. */
export function policyWarnings(policy: Policy): readonly string[] {
  return [...hollowDenials(policy), ...openEndedPrices(policy)];
}

/** What moves over a network costs what it costs: of many calls at a time each may pass the line. */
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

/** Whoever can run code can run a shell. */
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
  // A rule that looks at arguments refuses some calls, not the tool.
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
