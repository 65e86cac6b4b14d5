import type { SkillTexts } from "../capability/skill.ts";
import type { ResourceContents, ToolResult } from "../capability/content.ts";
import { type Call, contextOf, type Caller, withFields } from "./call.ts";
import type { Completer } from "../capability/define.ts";
import type { Registry, Resource, Tool } from "../capability/registry.ts";
import { isOwlError, OwlError } from "../errors/owl-error.ts";
import { QUOTA_META_KEY } from "../governance/quota.ts";
import { type Subject, unknownSubject } from "../governance/subject.ts";
import { runGoverned } from "./governed-call.ts";
import type { Governed, GovernanceParts, GovernedWork } from "./governed-work.ts";
import { keepInformed } from "./watched-run.ts";
import {
  ListRecords,
  type Look,
  recordRefusedTask,
  recordTaskWord,
  recordUnwatchable,
  type TaskWord,
} from "./list-records.ts";
import { renderResult, type PromptResult, toContents, toPromptResult } from "./render-result.ts";
import { runBounded } from "./run-bounded.ts";
import { completionSubject, toolSubject } from "./subjects.ts";
import { contentsByDigest, sandboxFacts } from "./ledger-facts.ts";
import { argumentsInUri, judgedArguments, validateArguments, validatePromptArguments } from "./validate-arguments.ts";
import { View } from "./view.ts";

export interface PipelineOptions {
  readonly registry: Registry;
  readonly timeoutMs: number;
  readonly progressAfterMs: number;
  readonly maxResultChars: number;
  /**
   * Without it, calls are neither checked nor recorded: for tests of the other stages, and to measure the cost of
   * governance.
   */
  readonly governance?: GovernanceParts | undefined;
  readonly skillTexts?: SkillTexts | undefined;
}

/**
 * The single path to everything that the server offers. The stages of a tool call are: visibility, arguments, rules,
 * limits, budget, approval, run within its time, rendering, settlement, record. Resources, prompts and completions pass
 * the same stages.
 */
export class Pipeline {
  readonly registry: Registry;
  /** What each caller may see. */
  readonly view: View;
  readonly skillTexts: SkillTexts | undefined;
  readonly #options: PipelineOptions;
  readonly #lists: ListRecords | undefined;

  constructor(options: PipelineOptions) {
    this.registry = options.registry;
    this.skillTexts = options.skillTexts;
    this.#options = options;
    const { registry, governance, timeoutMs } = options;
    this.view = new View({ registry, governor: governance?.governor, timeoutMs });
    this.#lists = governance === undefined ? undefined : new ListRecords(governance);
  }

  get governance(): GovernanceParts | undefined {
    return this.#options.governance;
  }

  /** The tools that this caller may see. Returns the same list object until something changes. */
  visibleTools(caller: Caller): readonly Tool[] {
    return this.view.tools(caller);
  }

  /** The resources that this caller may see, skills among them. */
  visibleResources(caller: Caller): readonly Resource[] {
    return this.view.resources(caller);
  }

  /** A tool that the caller may use. A refusal is counted and recorded like that of a call. */
  findTool(name: string, call: Call, args: unknown): Tool | Promise<never> {
    const tool = this.registry.tool(name);
    if (tool !== undefined && this.view.objectionTo(tool, call.caller) === undefined) return tool;
    const subject = tool === undefined ? unknownSubject("tool", name) : this.view.subjectOf(tool);
    const missing = new OwlError("tool_not_found", `there is no tool named "${name.slice(0, 128)}"`);
    return this.refuse({ kind: "tool", subject, calledAs: name, args, call }, missing);
  }

  async callTool(tool: Tool, args: unknown, call: Call): Promise<ToolResult> {
    const { value, quota } = await this.govern({
      kind: "tool",
      subject: toolSubject(tool, this.#options.timeoutMs),
      calledAs: tool.name,
      args,
      call,
      check: () => validateArguments(tool, args),
      toJudged: (input) => judgedArguments(tool, input),
      perform: (input, charged) => this.#runTool(tool, input, charged),
    });
    return quota === undefined ? value : withFields(value, { _meta: { ...value._meta, [QUOTA_META_KEY]: quota } });
  }

  async readResource(uri: string, call: Call): Promise<Governed<readonly ResourceContents[]>> {
    const found = this.registry.findResource(uri);
    const work = { kind: "resource", calledAs: uri, args: { uri }, call } as const;
    if (found === undefined)
      return this.refuse({ ...work, subject: this.view.subjectOfResource(uri, undefined) }, noResource(uri));
    const { resource, variables } = found;
    const { definition } = resource;
    const { sameAs } = definition;
    return this.govern({
      ...work,
      // Includes the path, so that a rule can be tried on the record as on the call.
      args: sameAs === undefined ? work.args : { uri, path: variables["path"] },
      subject: this.view.subjectOfResource(uri, resource),
      check: () => argumentsInUri(found),
      perform: async (_args, charged) => {
        const output = await runBounded((life) => definition.read(uri, variables, contextOf(charged, life)), {
          what: `the resource "${definition.name}"`,
          timeoutMs: this.#options.timeoutMs,
          life: call.life,
          watch: charged.watch,
        });
        return toContents(output, uri, definition);
      },
      toRecord: definition.skill === undefined ? undefined : contentsByDigest,
    });
  }

  /** Only resources that the caller may read can be watched. */
  async subscribe(uri: string, asked: Pick<Call, "caller" | "traceId">): Promise<void> {
    const { governance } = this.#options;
    try {
      this.assertOpenToWatch(uri, asked.caller);
    } catch (error) {
      if (governance !== undefined && isOwlError(error)) await recordUnwatchable(governance, asked, { uri, error });
      throw error;
    }
    if (this.registry.findResource(uri) === undefined) throw noResource(uri);
    const about = { args: { uri }, ...sandboxFacts({ uri }, undefined) };
    await this.recordLook({ kind: "list", name: "resources/subscribe", result: {}, ...about }, asked);
  }

  /** A hidden resource is refused in the same way, whether it exists or not. */
  assertOpenToWatch(uri: string, caller: Caller): void {
    const resource = this.registry.findResource(uri)?.resource;
    this.view.assertOpen(this.view.subjectOfResource(uri, resource), caller);
  }

  /** The suggestions of a completer, which has a time limit like all code of authors. */
  complete(
    { subject, argument, value, others, find, isOpen }: CompletionRequest,
    call: Call,
  ): Promise<Governed<readonly string[]>> {
    return this.govern({
      kind: "completion",
      subject: completionSubject(subject),
      calledAs: subject.name,
      args: { argument, value },
      judged: { argument, value },
      call,
      check: find,
      perform: (completer, charged) => this.#suggest(completer, { value, others, isOpen }, charged),
    });
  }

  async getPrompt(name: string, args: unknown, call: Call): Promise<Governed<PromptResult>> {
    const prompt = this.registry.prompt(name);
    const work = { kind: "prompt", subject: this.view.subjectOfPrompt(name), calledAs: name, args, call } as const;
    if (prompt === undefined) return this.refuse(work, noPrompt(name));
    return this.govern({
      ...work,
      check: () => validatePromptArguments(prompt, args),
      perform: async (value, charged) => {
        const output = await runBounded((life) => prompt.definition.run(value, contextOf(charged, life)), {
          what: `the prompt "${name}"`,
          timeoutMs: this.#options.timeoutMs,
          life: call.life,
          watch: charged.watch,
        });
        return toPromptResult(output, prompt.definition);
      },
    });
  }

  /** Takes any work through the stages of a call. */
  async govern<I, T>(work: GovernedWork<I, T>): Promise<Governed<T>> {
    const { governance } = this.#options;
    if (governance !== undefined) return runGoverned(governance, work);
    const input = await work.check();
    work.call.onPassed?.();
    return { value: await work.perform(input, work.call), quota: undefined };
  }

  /** Refuses a call to something that does not exist, like a call with invalid arguments. */
  async refuse(work: Omit<GovernedWork<never, never>, "check" | "perform">, error: OwlError): Promise<never> {
    const fail = (): never => {
      throw error;
    };
    await this.govern<never, never>({ ...work, check: fail, perform: fail });
    throw error;
  }

  /** A list is not a call and costs nothing; the request for it is recorded. */
  async recordList(name: string, call: Call, count: number): Promise<void> {
    await this.#lists?.record(call, { kind: "list", name, args: {}, result: { count } });
  }

  /** Reading what a call has left is not a call either. `ListRecords` decides which reads are recorded. */
  async recordLook(look: Look, asked: Pick<Call, "caller" | "traceId">): Promise<void> {
    await this.#lists?.record(asked, look);
  }

  /** A message to a running task is not a call either: a client that may start a task may always end it. */
  async recordTaskWord(name: string, asked: Pick<Call, "caller" | "traceId">, args: TaskWord): Promise<void> {
    const { governance } = this.#options;
    if (governance !== undefined) await recordTaskWord(governance, asked, { name, args });
  }

  async recordNoTask(
    asked: Pick<Call, "caller" | "traceId">,
    task: { readonly name: string; readonly task_id: string; readonly error: OwlError },
  ): Promise<void> {
    const { governance } = this.#options;
    if (governance !== undefined) await recordRefusedTask(governance, asked, task);
  }

  /** A task must not continue after a later pause or rule forbids its call. @throws OwlError */
  async judgeTask(
    { tool, args, caller }: { readonly tool: Tool; readonly args: unknown; readonly caller: Caller },
    asked: Pick<Call, "caller" | "traceId">,
    { name, task_id }: { readonly name: string; readonly task_id: string },
  ): Promise<void> {
    const { governance, timeoutMs } = this.#options;
    if (governance === undefined) return;
    const { governor } = governance;
    try {
      if (governor.pauses.isStale) await governor.askWhoIsPaused();
      governor.pauses.check(caller.principal.id);
      governor.assertAllowed(
        governor.policyFor(caller),
        toolSubject(tool, timeoutMs),
        judgedArguments(tool, await validateArguments(tool, args)),
      );
    } catch (error) {
      if (isOwlError(error)) await recordRefusedTask(governance, asked, { name, task_id, tool: tool.name, error });
      throw error;
    }
  }

  async #runTool(tool: Tool, input: unknown, call: Call): Promise<ToolResult> {
    const { progressAfterMs, maxResultChars, timeoutMs } = this.#options;
    const informed = call.conversation.wantsProgress
      ? keepInformed(call, { afterMs: progressAfterMs, what: tool.name })
      : undefined;
    try {
      const output = await runBounded((life) => tool.run(input, contextOf(informed?.call ?? call, life, this.view)), {
        what: `the tool "${tool.name}"`,
        timeoutMs: tool.timeoutMs ?? timeoutMs,
        timeoutSetBy: tool.timeoutMs === undefined ? undefined : (tool.timeoutSetBy ?? "timeoutMs of its definition"),
        life: call.life,
        watch: call.watch,
      });
      return await renderResult(tool, output, maxResultChars);
    } finally {
      informed?.stop();
    }
  }

  async #suggest(
    completer: Completer | undefined,
    { value, others, isOpen }: Pick<CompletionRequest, "value" | "others" | "isOpen">,
    call: Call,
  ): Promise<readonly string[]> {
    if (completer === undefined) return [];
    const { timeoutMs } = this.#options;
    const output: unknown = await runBounded((life) => completer(value, others, contextOf(call, life)), {
      what: "the completer",
      timeoutMs,
      life: call.life,
      watch: call.watch,
    });
    if (Array.isArray(output) && output.every((item) => typeof item === "string")) return output.filter(isOpen);
    throw new OwlError("execution_error", "the completer returned what is no list of strings");
  }
}

export interface CompletionRequest {
  /** What the suggestions are for. */
  readonly subject: Subject;
  readonly argument: string;
  readonly value: string;
  readonly others: Readonly<Record<string, string>>;
  readonly find: () => Completer | undefined;
  /** Whether a suggestion leads to something that the caller may see. */
  readonly isOpen: (suggestion: string) => boolean;
}

function noResource(uri: string): OwlError {
  return new OwlError("resource_not_found", `there is no resource "${uri.slice(0, 256)}"`, {
    facts: { uri: uri.slice(0, 256) },
  });
}

function noPrompt(name: string): OwlError {
  return new OwlError("prompt_not_found", `there is no prompt named "${name.slice(0, 128)}"`);
}
