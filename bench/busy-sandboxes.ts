import { ToolClient } from "./tool-client.ts";

/** A hundred at once would wait for each other longer than a guest may take to say hello. */
const STARTS_AT_ONCE = 5;

/** Each sandbox has a client of its own, which calls again as soon as it is answered. */
export class BusySandboxes {
  calls = 0;
  readonly #stopping = new AbortController();
  readonly #working: readonly Promise<void>[];

  private constructor(clients: readonly ToolClient[], sessions: readonly unknown[]) {
    this.#working = clients.map((client, at) => this.#work(client, sessions[at]));
  }

  static async start(origin: string, count: number): Promise<BusySandboxes> {
    const clients = await Promise.all(Array.from({ length: count }, () => ToolClient.open(origin)));
    const sessions: unknown[] = [];
    for (let made = 0; made < count; made += STARTS_AT_ONCE) {
      const group = clients.slice(made, made + STARTS_AT_ONCE);
      const answers = await Promise.all(group.map((client) => client.call("code_run", { code: "count = 0" })));
      sessions.push(...answers.map(({ fields }) => fields["session_id"]));
    }
    return new BusySandboxes(clients, sessions);
  }

  /** A call that fails is a failure of the whole. */
  async guard<T>(work: Promise<T>): Promise<T> {
    return await Promise.race([
      work,
      Promise.race(this.#working).then(() => Promise.reject(new Error("a client ended"))),
    ]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#working);
  }

  async #work(client: ToolClient, session_id: unknown): Promise<void> {
    const call = async (name: string, args: Readonly<Record<string, unknown>>): Promise<void> => {
      await client.call(name, { ...args, session_id });
      this.calls += 1;
    };
    try {
      for (let round = 0; !this.#stopping.signal.aborted; round += 1) {
        await call("code_run", { code: `count += 1; print("round", count); count` });
        await call("shell_exec", { command: `echo round ${round}` });
        await call("file_write", { path: "f.txt", content: String(round) });
        await call("file_read", { path: "f.txt" });
      }
    } finally {
      client.close();
    }
  }
}
