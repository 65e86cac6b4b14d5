import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import * as z from "zod";
import type { Config } from "../../config/schema.ts";
import { type DoctorCheck, type DoctorLook, failed, ok } from "./check.ts";

const NAMED = { category: "whole way", name: "a call over stdio" } as const;
const TIMEOUT_MS = 90_000;
const KEPT_LINES = 20;

const answerSchema = z.object({
  id: z.number(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ message: z.string() }).optional(),
});

type Answer = z.output<typeof answerSchema>;

/** Starts this very program as a client would, and has a tool run. `command` is how it is started, without the transport. */
export function wholeWayLook(config: Config, command: readonly string[]): DoctorLook {
  return {
    async look() {
      const line = new ChildLine(command);
      try {
        return [await callTool(line, config)];
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return [failed(NAMED, `${reason}${line.lastWords()}`, "repair what failed above, then run doctor again")];
      } finally {
        await line.close();
      }
    },
  };
}

async function callTool(line: ChildLine, { sandbox }: Config): Promise<DoctorCheck> {
  const startMs = performance.now();
  const clientInfo = { name: "owlclaw-doctor", version: "1" };
  await line.ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  line.tell("notifications/initialized");
  const took = (): string => `${Math.round(performance.now() - startMs)} ms`;
  if (!sandbox.enabled) {
    await line.ask(2, "tools/list", {});
    return ok(NAMED, `the server starts and lists its tools, in ${took()}`);
  }
  const { result = {} } = await line.ask(2, "tools/call", { name: "code_run", arguments: { code: "print(6*7)" } });
  const text = JSON.stringify(result);
  if (result["isError"] !== true && text.includes("42")) return ok(NAMED, `code_run answered 42, in ${took()}`);
  return failed(NAMED, `code_run did not answer 42: ${text.slice(0, 300)}`, "see what failed above");
}

/** A server as a child, asked one thing after another. */
class ChildLine {
  readonly #child;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly #log: string[] = [];
  readonly #over: Promise<never>;

  constructor([program = "", ...args]: readonly string[]) {
    this.#child = spawn(program, [...args], { stdio: "pipe", timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
    this.#child.stdin.on("error", () => undefined);
    createInterface({ input: this.#child.stderr }).on("line", (text) => {
      this.#log.push(text);
      if (this.#log.length > KEPT_LINES) this.#log.shift();
    });
    createInterface({ input: this.#child.stdout }).on("line", (text) => this.#onLine(text));
    this.#over = new Promise((_resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code, signal) => reject(new Error(`the server ended with ${code ?? signal}`)));
    });
    this.#over.catch(() => undefined);
  }

  async ask(id: number, method: string, params: Readonly<Record<string, unknown>>): Promise<Answer> {
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const answer = await Promise.race([answered, this.#over]);
    if (answer.error !== undefined) throw new Error(`${method} failed: ${answer.error.message}`);
    return answer;
  }

  tell(method: string): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method })}\n`);
  }

  lastWords(): string {
    return this.#log.length === 0 ? "" : `; its log ends with: ${this.#log.slice(-2).join(" ").slice(0, 500)}`;
  }

  async close(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    this.#child.stdin.end();
    if (exitCode === null && signalCode === null && this.#child.pid !== undefined) await once(this.#child, "exit");
  }

  #onLine(text: string): void {
    const parsed = answerSchema.safeParse(JSON.parse(text));
    if (parsed.success) this.#waiting.get(parsed.data.id)?.(parsed.data);
  }
}
