import type { Registry } from "../capability/registry.ts";
import type { Config } from "../config/schema.ts";
import { toOwlError } from "../errors/owl-error.ts";
import type { SupposedCall } from "../governance/explain.ts";
import {
  argumentsInUri,
  judgedArguments,
  validateArguments,
  validatePromptArguments,
} from "../call/validate-arguments.ts";
import { type Policy } from "../governance/policy/policy.ts";
import { readPolicy } from "../governance/policy/policy-source.ts";
import { type Subject, unknownSubject } from "../governance/subject.ts";
import { promptSubject, resourceSubject, toolSubject, unknownResource } from "../call/subjects.ts";

/**
 * The configured policy, or the policy with this file in place of the configured one.
 * @throws PolicyError
 */
export function policyOf({ governance }: Config, candidate: string | undefined): Promise<Policy> {
  return readPolicy(candidate === undefined ? governance : { ...governance, policyFile: candidate });
}

/** Resolves names and arguments to what policy rules see. */
export class NamedCalls {
  readonly #registry: Registry;
  readonly #timeoutMs: number;

  constructor(registry: Registry, { tools: { timeoutSeconds } }: Config) {
    this.#registry = registry;
    this.#timeoutMs = timeoutSeconds * 1000;
  }

  subject(name: string): Subject {
    return subjectNamed(this.#registry, name, this.#timeoutMs);
  }

  /** A call as rules would see it. Undefined when nothing has this name. */
  async find(name: string, args: unknown): Promise<SupposedCall | undefined> {
    const read = argumentsReader(this.#registry, name);
    if (read === undefined) return undefined;
    const subject = this.subject(name);
    try {
      return { subject, args: await read(args) };
    } catch (error) {
      const tool = this.#registry.tool(name);
      const seen = tool === undefined ? args : judgedArguments(tool, args);
      return { subject, args: seen, mistake: toOwlError(error).message };
    }
  }

  /** The same, also for an unknown name. */
  async call(name: string, args: unknown): Promise<SupposedCall> {
    return (await this.find(name, args)) ?? { subject: this.subject(name), args };
  }
}

/** The function with which the pipeline reads the arguments for this name. */
function argumentsReader(registry: Registry, name: string): ((args: unknown) => unknown) | undefined {
  if (name.startsWith("prompt:")) {
    const prompt = registry.prompt(name.slice("prompt:".length));
    return prompt && ((args) => validatePromptArguments(prompt, args));
  }
  const tool = registry.tool(name);
  if (tool !== undefined) return async (args) => judgedArguments(tool, await validateArguments(tool, args));
  const found = registry.findResource(name);
  return found && (() => argumentsInUri(found));
}

/** The subject of a name: a tool under any of its names, `prompt:NAME`, or a URI. */
function subjectNamed(registry: Registry, name: string, timeoutMs: number): Subject {
  if (name.startsWith("prompt:")) return promptSubject(name.slice("prompt:".length), timeoutMs);
  const tool = registry.tool(name);
  if (tool !== undefined) return toolSubject(tool, timeoutMs);
  const resource = registry.findResource(name)?.resource;
  if (resource !== undefined) return resourceSubject({ uri: name, resource, timeoutMs });
  return name.includes("://") ? unknownResource(name) : unknownSubject("tool", name);
}
