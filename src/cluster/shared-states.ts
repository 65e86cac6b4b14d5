import type { RedisConnection } from "../platform/redis-connection.ts";

/** What was used once at one server is used at no other, while anybody would still accept it. */
export class SharedStates {
  readonly #connection: RedisConnection;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** @throws OwlError when Redis cannot say. */
  async use(id: string, lifeMs: number): Promise<boolean> {
    const answer = await this.#connection.send(["SET", `owlclaw:state:${id}`, "1", "NX", "PX", String(lifeMs)]);
    return answer === "OK";
  }
}
