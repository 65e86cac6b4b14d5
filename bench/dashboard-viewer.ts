import { get, type IncomingMessage } from "node:http";
import { once } from "node:events";

/** An operator's page, as far as the server can tell: streams that are read as they come. */
export class Viewer {
  readonly #origin: string;
  readonly #cookie: string;
  readonly #streams: IncomingMessage[] = [];
  #bytes = 0;

  private constructor(origin: string, cookie: string) {
    this.#origin = origin;
    this.#cookie = cookie;
  }

  /** By a link of the server, as `owlclaw mcp-server dashboard` prints it. */
  static async signIn(link: string): Promise<Viewer> {
    const { headers } = await fetch(link, { redirect: "manual" });
    const cookie = headers.getSetCookie()[0]?.split(";")[0];
    if (cookie === undefined) throw new Error("the link opened no session");
    return new Viewer(new URL(link).origin, cookie);
  }

  /** All that has come so far. */
  get bytes(): number {
    return this.#bytes;
  }

  async sandboxes(): Promise<readonly string[]> {
    const response = await fetch(`${this.#origin}/dashboard/api/now`, { headers: this.#headers() });
    const text = await response.text();
    return [...text.matchAll(/"id":"(owl-[0-9a-f]+)"/g)].map(([, id = ""]) => id);
  }

  /** Resolves when its first event is there. */
  async watch(name: string): Promise<void> {
    const headers = { ...this.#headers(), accept: "text/event-stream" };
    const request = get(`${this.#origin}/dashboard/api/${name}`, { headers, agent: false });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve).once("error", reject);
    });
    if (response.statusCode !== 200) throw new Error(`${name} was answered with ${response.statusCode}`);
    // Cut off at the end of a round, by us.
    response.on("error", () => undefined);
    response.on("data", (chunk: Buffer) => (this.#bytes += chunk.length));
    this.#streams.push(response);
    await once(response, "data");
  }

  /** Stays signed in. */
  lookAway(): void {
    for (const stream of this.#streams.splice(0)) stream.destroy();
  }

  #headers(): Record<string, string> {
    return { cookie: this.#cookie, origin: this.#origin, "sec-fetch-site": "same-origin" };
  }
}
