import { spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { BIN, environment, type ServerOptions, ServerProcess, startArguments } from "./harness.ts";
import { CLIENT_INFO, envelope, type JsonRpcAnswer } from "./wire-messages.ts";

/** A stdio server and its raw pipes. Whatever the server writes to stdout must be JSON-RPC, one message a line. */
export class StdioLine extends ServerProcess {
  readonly received: JsonRpcAnswer[] = [];
  /** Lines of stdout that are no JSON-RPC message. */
  readonly strays: string[] = [];
  readonly #stdin: Writable;
  readonly #stdout: Readable;
  readonly #watchers = new Set<() => void>();
  #rest = "";
  #lastId = 0;

  constructor(options: ServerOptions = {}, argv: readonly string[] = startArguments("stdio", options)) {
    const child = spawn(process.execPath, [BIN, ...argv], { env: environment(options), stdio: "pipe" });
    super(child);
    this.#stdin = child.stdin;
    this.#stdout = child.stdout;
    // A server that has ended closes its end; what was on the way is lost, which is no failure of the test.
    this.#stdin.on("error", () => undefined);
    this.#stdout.setEncoding("utf8").on("data", (text: string) => this.#onText(text));
    child.once("exit", () => this.#wake());
  }

  write(text: string | Uint8Array): void {
    this.#stdin.write(text);
  }

  send(message: unknown): void {
    this.write(`${JSON.stringify(message)}\n`);
  }

  /** Closes stdin. */
  end(text = ""): void {
    this.#stdin.end(text);
  }

  pauseReading(): void {
    this.#stdout.pause();
  }

  resumeReading(): void {
    this.#stdout.resume();
  }

  async message(matches: (message: JsonRpcAnswer) => boolean): Promise<JsonRpcAnswer> {
    for (;;) {
      const found = this.received.find(matches);
      if (found !== undefined) return found;
      if (this.child.exitCode !== null && this.#stdout.readableEnded) {
        throw new Error(`the server ended with ${this.child.exitCode}:\n${this.stderr.join("\n")}`);
      }
      await new Promise<void>((resolve) => this.#watchers.add(resolve));
    }
  }

  answer(id: string | number | null): Promise<JsonRpcAnswer> {
    return this.message((message) => message.id === id && message.method === undefined);
  }

  request(method: string, params: Record<string, unknown> = {}): Promise<JsonRpcAnswer> {
    const id = ++this.#lastId;
    this.send({ jsonrpc: "2.0", id, method, params });
    return this.answer(id);
  }

  modernRequest(
    method: string,
    params: Record<string, unknown> = {},
    capabilities: Record<string, unknown> = {},
  ): Promise<JsonRpcAnswer> {
    return this.request(method, envelope(params, capabilities));
  }

  async initialize(protocolVersion = "2025-11-25", capabilities: Record<string, unknown> = {}): Promise<JsonRpcAnswer> {
    const answer = await this.request("initialize", { protocolVersion, capabilities, clientInfo: CLIENT_INFO });
    this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return answer;
  }

  /** Closes stdin and wants a clean end. */
  async finish(): Promise<void> {
    this.end();
    await this.exitedWell();
    if (this.strays.length > 0) throw new Error(`stdout had lines that are no JSON-RPC: ${this.strays.join("\n")}`);
  }

  #onText(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      try {
        for (const message of [JSON.parse(line)].flat() as JsonRpcAnswer[]) {
          if (message.jsonrpc === "2.0") this.received.push(message);
          else this.strays.push(line);
        }
      } catch {
        this.strays.push(line);
      }
    }
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }
}
