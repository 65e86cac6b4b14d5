import { performance } from "node:perf_hooks";
import { z } from "zod";
import { HttpConnection } from "./http-connection.ts";
import { META_2026, callHeaders, encode } from "./requests.ts";

const answerSchema = z.object({
  result: z.object({
    isError: z.literal(true).optional(),
    structuredContent: z.record(z.string(), z.unknown()).optional(),
  }),
});

export interface TimedAnswer {
  readonly ms: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

let lastId = 0;

export interface ToolClientOptions {
  /** For a server so slow that a connection may end while a call is on its way. Opening one is never in the time. */
  readonly isFreshForEach?: boolean;
}

/** Calls any tool over revision 2026-07-28 on one kept-alive connection. A failed call ends the run. */
export class ToolClient {
  #connection: HttpConnection;
  readonly #url: URL;
  readonly #isFreshForEach: boolean;

  private constructor(connection: HttpConnection, url: URL, isFreshForEach: boolean) {
    this.#connection = connection;
    this.#url = url;
    this.#isFreshForEach = isFreshForEach;
  }

  static async open(origin: string, { isFreshForEach = false }: ToolClientOptions = {}): Promise<ToolClient> {
    const url = new URL("/mcp", origin);
    return new ToolClient(await HttpConnection.open(url), url, isFreshForEach);
  }

  /** The time is from the first byte sent to the last one received: reading the answer is not in it. */
  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<TimedAnswer> {
    lastId += 1;
    const params = { name, arguments: args, _meta: META_2026 };
    const request = encode({
      method: "POST",
      url: this.#url,
      headers: { ...callHeaders("http-2026"), "Mcp-Name": name },
      body: JSON.stringify({ jsonrpc: "2.0", id: lastId, method: "tools/call", params }),
    });
    if (this.#isFreshForEach) this.#connection.close();
    if (this.#connection.isClosed) this.#connection = await HttpConnection.open(this.#url);
    const startedAt = performance.now();
    const { body } = await this.#connection.exchange(request);
    const ms = performance.now() - startedAt;
    const answer = answerSchema.safeParse(JSON.parse(messageOf(body)));
    if (answer.data === undefined || answer.data.result.isError === true) {
      throw new Error(`${name} was answered with ${body}`);
    }
    return { ms, fields: answer.data.result.structuredContent ?? {} };
  }

  close(): void {
    this.#connection.close();
  }
}

/** An answer comes as JSON, or as the last event of a stream. */
function messageOf(body: string): string {
  if (body.startsWith("{")) return body;
  const lines = body.split("\n").filter((line) => line.startsWith("data: "));
  return lines.at(-1)?.slice("data: ".length) ?? "null";
}
