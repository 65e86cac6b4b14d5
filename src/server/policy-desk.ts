import type { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import { type Policy } from "../governance/policy/policy.ts";
import { readPolicy } from "../governance/policy/policy-source.ts";
import { type Subject, unknownSubject } from "../governance/subject.ts";
import { promptSubject, resourceSubject, toolSubject } from "../pipeline/subjects.ts";

/** The configured policy, or what it would be with this file in place of its own. @throws PolicyError */
export function policyOf({ governance }: Config, candidate: string | undefined): Promise<Policy> {
  return readPolicy(candidate === undefined ? governance : { ...governance, policyFile: candidate });
}

/** What a name means here: a tool under any of its names, `prompt:NAME`, or a URI. */
export function subjectNamed(registry: Registry, name: string, timeoutMs: number): Subject {
  if (name.startsWith("prompt:")) return promptSubject(name.slice("prompt:".length));
  const tool = registry.tool(name);
  if (tool !== undefined) return toolSubject(tool, timeoutMs);
  const resource = registry.findResource(name)?.resource;
  if (resource !== undefined) return resourceSubject(name, resource);
  return unknownSubject(name.includes("://") ? "resource" : "tool", name);
}
