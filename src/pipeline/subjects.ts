import type { ResourceDefinition } from "../capabilities/define.ts";
import type { Resource, Tool } from "../capabilities/registry.ts";
import { FREE, type Subject } from "../governance/subject.ts";

const tools = new WeakMap<Tool, Subject>();

/** A tool as governance sees it: whatever its name, the operation is judged. */
export function toolSubject(tool: Tool, timeoutMs: number): Subject {
  let subject = tools.get(tool);
  if (subject === undefined) {
    const { name, operation, scope, price, confirm } = tool;
    const names = [...new Set([operation?.name ?? name, name, ...(operation?.names ?? [])])];
    const longestMs = tool.timeoutMs ?? timeoutMs;
    subject = { kind: "tool", name: operation?.name ?? name, names, scope, price, confirm, timeoutMs: longestMs };
    tools.set(tool, subject);
  }
  return subject;
}

const resources = new WeakMap<ResourceDefinition, Subject>();

/** One URI. What gives the same as a tool is judged as the tool is, too. */
export function resourceSubject(uri: string, { definition }: Resource): Subject {
  // Of a template there are as many as callers can think of.
  if (uri !== definition.uri) return subjectOfUri(uri, definition);
  let subject = resources.get(definition);
  if (subject === undefined) {
    subject = subjectOfUri(uri, definition);
    resources.set(definition, subject);
  }
  return subject;
}

function subjectOfUri(uri: string, definition: ResourceDefinition): Subject {
  const names = [uri, definition.uri, ...(definition.sameAs ?? [])];
  return { kind: "resource", name: uri, names, scope: undefined, price: FREE, confirm: undefined, timeoutMs: 0 };
}

export function promptSubject(name: string): Subject {
  return { kind: "prompt", name, names: [name], scope: undefined, price: FREE, confirm: undefined, timeoutMs: 0 };
}

/** Suggestions are as open as what they are for. */
export function completionSubject(of: Subject): Subject {
  return { ...of, confirm: undefined };
}

/** What a door does that stands beside a tool: the operation, under its native name and the dialects'. */
export function operationSubject(name: string, scope: string): Subject {
  const names = [name, name.replace("_", ".")];
  return { kind: "tool", name, names, scope, price: FREE, confirm: undefined, timeoutMs: 0 };
}
