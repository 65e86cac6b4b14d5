import type { Outcome } from "./sandbox-tool.ts";

const MAX_HOSTS = 20;

/** The messages of curl, Python, Node, git and wget for a host name that does not resolve. */
const NO_SUCH_NAME =
  /could not resolve|unable to resolve|name resolution|name or service not known|nodename nor servname|ENOTFOUND|EAI_AGAIN/i;

/** Hosts that programs in the sandbox reach without the proxy: servers in the sandbox itself. */
const OWN_LOOPBACK = /^(?:127\.0\.0\.1|localhost|\[?::1\]?)(?:[:/]|$)/;
const LOOPBACK_NOTE =
  "127.0.0.1 and localhost are the sandbox itself, unless a program is told to use the proxy for them too, as with curl --noproxy ''.";

/** Says in a tool's description which hosts can be reached. */
export function networkNote(allow: readonly string[]): string {
  if (allow.length === 0) return "There is no network inside: nothing can be downloaded or called.";
  const note = `Of the network only these hosts can be reached, through the proxy that HTTP_PROXY names: ${hostList(allow)}.`;
  return allow.some((rule) => OWN_LOOPBACK.test(rule)) ? `${note} ${LOOPBACK_NOTE}` : note;
}

/** The same for `sandbox_create`, where the template decides. */
export function networkNotes(allow: readonly string[], templates: Readonly<Record<string, readonly string[]>>): string {
  const own = Object.entries(templates).map(([name, hosts]) => `${name}: ${hostList(hosts)}`);
  return own.length === 0 ? networkNote(allow) : `${networkNote(allow)} In sandboxes of a template: ${own.join("; ")}.`;
}

/** Adds the list of reachable hosts to a failure that is caused by an unresolved host name. */
export function withNetworkHint(outcome: Outcome, allow: readonly string[]): Outcome {
  const { failure, value } = outcome;
  const hint = failure && networkHint(`${failure.reason} ${JSON.stringify(value)}`, allow);
  return failure === undefined || hint === undefined
    ? outcome
    : { ...outcome, failure: { ...failure, hint: `${hint} ${failure.hint}` } };
}

export function networkHint(said: string, allow: readonly string[]): string | undefined {
  return NO_SUCH_NAME.test(said) ? networkNote(allow) : undefined;
}

function hostList(hosts: readonly string[]): string {
  if (hosts.length === 0) return "no network";
  const more = hosts.length - MAX_HOSTS;
  return `${hosts.slice(0, MAX_HOSTS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
