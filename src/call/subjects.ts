import type { ResourceDefinition } from "../capability/define.ts";
import type { Resource, Tool } from "../capability/registry.ts";
import { FREE, type Subject, unknownSubject } from "../governance/subject.ts";
import { namesAt, namesOfNothing } from "./resource-names.ts";

const tools = new WeakMap<Tool, Subject>();

/** A tool as governance sees it: its operation is judged, whatever its name. */
export function toolSubject(tool: Tool, timeoutMs: number): Subject {
  let subject = tools.get(tool);
  if (subject === undefined) {
    const { name, operation, scope, price, mayCharge, confirm } = tool;
    const names = [...new Set([operation?.name ?? name, name, ...(operation?.names ?? [])])];
    const longestMs = tool.timeoutMs ?? timeoutMs;
    const shared = { names, scope, price, mayCharge, confirm, timeoutMs: longestMs };
    subject = { kind: "tool", name: operation?.name ?? name, calledAs: name, ...shared };
    tools.set(tool, subject);
  }
  return subject;
}

const resources = new WeakMap<ResourceDefinition, Subject>();

export interface ResourceAt {
  readonly uri: string;
  readonly resource: Resource;
  readonly timeoutMs: number;
}

/** The subject of one URI. A resource that returns the same as a tool is judged as that tool, too. */
export function resourceSubject(at: ResourceAt): Subject {
  const { definition } = at.resource;
  // Not cached for a template: callers can invent any number of its URIs.
  if (at.uri !== definition.uri) return subjectOfUri(at);
  let subject = resources.get(definition);
  if (subject === undefined) {
    subject = subjectOfUri(at);
    resources.set(definition, subject);
  }
  return subject;
}

/** A URI without a resource. */
export function unknownResource(uri: string): Subject {
  return { ...unknownSubject("resource", uri), ...namesOfNothing(uri) };
}

function subjectOfUri({ uri, resource, timeoutMs }: ResourceAt): Subject {
  const { definition } = resource;
  const { sameAs, mayCharge } = definition;
  const own = namesAt(uri, resource);
  return {
    kind: "resource",
    ...own,
    names: [...own.names, ...(sameAs?.names ?? [])],
    sameAs: sameAs?.name,
    countedAs: sameAs?.name ?? definition.uri,
    scope: sameAs?.scope,
    price: FREE,
    mayCharge,
    confirm: undefined,
    timeoutMs,
  };
}

/** All prompts are code of users, which can report costs. */
export function promptSubject(name: string, timeoutMs: number): Subject {
  return {
    kind: "prompt",
    name,
    names: [name],
    scope: undefined,
    price: FREE,
    mayCharge: true,
    confirm: undefined,
    timeoutMs,
  };
}

/** Completions are as open as the subject that they are for, and report no costs. Rules see them as a separate kind. */
export function completionSubject(of: Subject): Subject {
  return { ...of, completes: of, mayCharge: false, confirm: undefined };
}

export interface OperationFacts {
  readonly name: string;
  readonly scope: string;
  readonly timeoutMs: number;
}

/** An operation that is not a tool, under its native name and those of the dialects. */
export function operationSubject({ name, scope, timeoutMs }: OperationFacts): Subject {
  const names = [name, name.replace("_", ".")];
  return { kind: "tool", name, names, scope, price: FREE, confirm: undefined, timeoutMs };
}
