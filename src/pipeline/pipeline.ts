import type { ResourceContents, ToolResult } from "../capabilities/content.ts";
import type { Completer } from "../capabilities/define.ts";
import type { Registry, Resource, Tool } from "../capabilities/registry.ts";
import { OwlError } from "../errors/owl-error.ts";
import { type Call, contextOf } from "./call.ts";
import type { Caller } from "./caller.ts";
import { keepInformed } from "./keep-informed.ts";
import { Lifeline } from "./lifeline.ts";
import { type PromptResult, toContents, toPromptResult } from "./render-contents.ts";
import { renderResult } from "./render-result.ts";
import { runBounded } from "./run-bounded.ts";
import { describeIssues } from "../capabilities/bad-arguments.ts";
import { validateArguments } from "./validate-arguments.ts";

export interface PipelineOptions {
  readonly registry: Registry;
  readonly timeoutMs: number;
  readonly progressAfterMs: number;
  readonly maxResultChars: number;
  readonly skillTexts?: SkillTexts | undefined;
}

/** What tools say about their skills: a summary, or the whole text. */
export interface SkillTexts {
  /** Rises whenever an answer of `of` may have changed. */
  readonly version: number;
  of(uri: string): string | undefined;
}

/**
 * The one way to whatever the server offers. A tool call passes: found, arguments valid, run within its time,
 * rendered. Resources and prompts pass the same stages as far as they have them.
 */
export class Pipeline {
  readonly registry: Registry;
  readonly skillTexts: SkillTexts | undefined;
  readonly #options: PipelineOptions;

  constructor(options: PipelineOptions) {
    this.registry = options.registry;
    this.skillTexts = options.skillTexts;
    this.#options = options;
  }

  /** The tools that this caller may know of. The same list object comes back until something changed. */
  visibleTools(_caller: Caller): readonly Tool[] {
    return this.registry.tools();
  }

  /** The resources that this caller may know of, skills among them. */
  visibleResources(_caller: Caller): readonly Resource[] {
    return this.registry.resources();
  }

  findTool(name: string): Tool {
    const tool = this.registry.tool(name);
    if (tool === undefined) throw new OwlError("tool_not_found", `there is no tool named "${name.slice(0, 128)}"`);
    return tool;
  }

  async callTool(tool: Tool, args: unknown, call: Call): Promise<ToolResult> {
    const checked = validateArguments(tool, args);
    const input: unknown = checked instanceof Promise ? await checked : checked;
    const { progressAfterMs, maxResultChars, timeoutMs } = this.#options;
    const informed = call.conversation.wantsProgress
      ? keepInformed(call, { afterMs: progressAfterMs, what: tool.name })
      : undefined;
    try {
      const output = await runBounded((life) => tool.run(input, contextOf(informed?.call ?? call, life)), {
        what: `the tool "${tool.name}"`,
        timeoutMs: tool.timeoutMs ?? timeoutMs,
        life: call.life,
      });
      return await renderResult(tool, output, maxResultChars);
    } finally {
      informed?.stop();
    }
  }

  async readResource(uri: string, call: Call): Promise<readonly ResourceContents[]> {
    const found = this.registry.findResource(uri);
    if (found === undefined) {
      throw new OwlError("resource_not_found", `there is no resource "${uri.slice(0, 256)}"`, {
        facts: { uri: uri.slice(0, 256) },
      });
    }
    const { definition } = found.resource;
    const output = await runBounded((life) => definition.read(uri, found.variables, contextOf(call, life)), {
      what: `the resource "${definition.name}"`,
      timeoutMs: this.#options.timeoutMs,
      life: call.life,
    });
    return toContents(output, uri, definition);
  }

  /** Suggestions of a completer, bounded like everything else that authors write. */
  async complete(
    completer: Completer,
    value: string,
    others: Readonly<Record<string, string>>,
  ): Promise<readonly string[]> {
    const { timeoutMs } = this.#options;
    const output: unknown = await runBounded(() => completer(value, others), {
      what: "the completer",
      timeoutMs,
      life: new Lifeline(),
    });
    if (Array.isArray(output) && output.every((item) => typeof item === "string")) return output;
    throw new OwlError("execution_error", "the completer returned what is no list of strings");
  }

  async getPrompt(name: string, args: unknown, call: Call): Promise<PromptResult> {
    const prompt = this.registry.prompt(name);
    if (prompt === undefined)
      throw new OwlError("prompt_not_found", `there is no prompt named "${name.slice(0, 128)}"`);
    const verdict = await prompt.arguments?.check(args ?? {});
    if (verdict?.ok === false) {
      throw new OwlError(
        "invalid_params",
        `invalid arguments for the prompt "${name}": ${describeIssues(verdict.issues)}`,
        {
          facts: { issues: verdict.issues },
        },
      );
    }
    const value: unknown = verdict === undefined ? {} : verdict.value;
    const output = await runBounded((life) => prompt.definition.run(value, contextOf(call, life)), {
      what: `the prompt "${name}"`,
      timeoutMs: this.#options.timeoutMs,
      life: call.life,
    });
    return toPromptResult(output, prompt.definition);
  }
}
