import type { Config } from "../../config/schema.ts";
import { browserCheck } from "./browser-check.ts";
import { type DoctorCheck, type DoctorLook, failed, ok } from "./check.ts";
import { AskFailed, ChildLine } from "./child-line.ts";

const NAMED = { category: "whole way", name: "a call over stdio" } as const;
const BROWSER = { category: "whole way", name: "browser" } as const;

interface TestStart {
  readonly tool: string;
  /** Other names under which it may be listed; all of them can be called. */
  readonly dialects: readonly string[];
  readonly args: Readonly<Record<string, unknown>>;
  /** What an answer must hold. */
  readonly answer?: string;
}

const CREATE: TestStart = { tool: "sandbox_create", dialects: [], args: {} };

/** Each does no harm; the first that the server offers is taken, since it goes the longest way. */
const TRIALS: readonly TestStart[] = [
  { tool: "code_run", dialects: ["execute_code", "code.exec"], args: { code: "print(6*7)" }, answer: "42" },
  { tool: "shell_exec", dialects: ["execute_command", "shell.exec"], args: { command: "expr 6 '*' 7" }, answer: "42" },
  { tool: "file_list", dialects: ["file.list"], args: {} },
  CREATE,
];

/** Starts this very program as a client would, and has tools run. `command` is how it is started, without the transport. */
export function wholeWayLook(config: Config, command: readonly string[]): DoctorLook {
  return {
    async look() {
      const line = new ChildLine(command);
      const checks: DoctorCheck[] = [];
      try {
        const startMs = performance.now();
        const listed = await listTools(line);
        const trials = config.sandbox.enabled ? trialsFor(config.sandbox, listed) : [];
        checks.push(await unlessRefused(NAMED, () => callTools(line, { trials, startMs })));
        const hasBrowser = config.sandbox.enabled && isAnyListed(listed, ["browser_goto", "browser.navigate"]);
        if (hasBrowser && checks.every(({ status }) => status === "ok"))
          checks.push(await unlessRefused(BROWSER, () => browserCheck(line)));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        checks.push(failed(NAMED, `${reason}${line.lastWords()}`, "repair what failed above, then run doctor again"));
      } finally {
        await line.close();
      }
      return checks;
    },
  };
}

async function listTools(line: ChildLine): Promise<ReadonlySet<string>> {
  const clientInfo = { name: "owlclaw-doctor", version: "1" };
  await line.ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  line.tell("notifications/initialized");
  return new Set(await line.listTools());
}

async function callTools(
  line: ChildLine,
  { trials, startMs }: { readonly trials: readonly TestStart[]; readonly startMs: number },
): Promise<DoctorCheck> {
  for (const { tool, args, answer = "" } of trials) {
    const called = await line.call(tool, args);
    const text = JSON.stringify(called);
    if (called.isError === true || !text.includes(answer))
      return failed(
        NAMED,
        `${tool} did not ${`answer ${answer}`.trim()}: ${text.slice(0, 300)}`,
        "see what failed above",
      );
  }
  const took = `in ${Math.round(performance.now() - startMs)} ms`;
  const last = trials.at(-1);
  if (last === undefined) return ok(NAMED, `the server starts and lists its tools, ${took}`);
  return ok(NAMED, `${last.tool} ${`answered ${last.answer ?? ""}`.trim()}, ${took}`);
}

/** None where nothing that is offered could have a sandbox. */
function trialsFor({ autoCreate }: Config["sandbox"], listed: ReadonlySet<string>): readonly TestStart[] {
  const isOffered = ({ tool, dialects }: TestStart): boolean => isAnyListed(listed, [tool, ...dialects]);
  const first = TRIALS.find(isOffered);
  if (first === undefined) return [];
  if (autoCreate || first === CREATE) return [first];
  // What it makes is the default of the calls after it.
  return isOffered(CREATE) ? [CREATE, first] : [];
}

function isAnyListed(listed: ReadonlySet<string>, names: readonly string[]): boolean {
  return names.some((name) => listed.has(name));
}

/** A policy that keeps the doctor from something is no fault of the server: it is asked, and it answers. */
async function unlessRefused(
  named: Pick<DoctorCheck, "category" | "name">,
  check: () => Promise<DoctorCheck>,
): Promise<DoctorCheck> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof AskFailed) || error.kind !== "governance_denied") throw error;
    return ok(named, `the server starts, and its policy refuses the call to the client doctor: ${error.reason}`);
  }
}
