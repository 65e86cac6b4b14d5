import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import * as z from "zod";

const TIMEOUT_MS = 180_000;
const KEPT_LINES = 20;

const answerSchema = z.object({
  id: z.number(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ message: z.string(), data: z.object({ kind: z.string().optional() }).optional() }).optional(),
});

type Answer = z.output<typeof answerSchema>;

const calledSchema = z.object({
  isError: z.boolean().optional(),
  content: z.array(z.object({ type: z.string(), text: z.string().optional(), data: z.string().optional() })),
});

/** The result of a tool call. */
export type Called = z.output<typeof calledSchema>;

const listedSchema = z.object({
  tools: z.array(z.object({ name: z.string() })),
  nextCursor: z.string().optional(),
});

/** The server responded with a JSON-RPC error. */
export class AskFailed extends Error {
  readonly reason: string;
  readonly kind: string | undefined;

  constructor(method: string, { message, data }: NonNullable<Answer["error"]>) {
    super(`${method} failed: ${message}`);
    this.reason = message;
    this.kind = data?.kind;
  }
}

/** Starts a server as a child process and sends it one request after another over stdio. */
export class ChildConnection {
  readonly #child;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly #log: string[] = [];
  readonly #over: Promise<never>;
  #lastId = 0;

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

  async ask(method: string, params: Readonly<Record<string, unknown>>): Promise<Answer> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const answer = await Promise.race([answered, this.#over]);
    if (answer.error !== undefined) throw new AskFailed(method, answer.error);
    return answer;
  }

  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<Called> {
    const { result } = await this.ask("tools/call", { name, arguments: args });
    return calledSchema.parse(result);
  }

  /** Returns the names of all tools, page by page. */
  async listTools(): Promise<string[]> {
    const names: string[] = [];
    for (let cursor: string | undefined; ;) {
      const { result } = await this.ask("tools/list", cursor === undefined ? {} : { cursor });
      const { tools, nextCursor } = listedSchema.parse(result);
      names.push(...tools.map(({ name }) => name));
      if (nextCursor === undefined) return names;
      cursor = nextCursor;
    }
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
