import type { IncomingMessage, ServerResponse } from "node:http";
import type { DashboardDoor } from "./dashboard-door.ts";
import type { RequestTarget } from "./request-target.ts";

type Door = Pick<DashboardDoor, "handle">;

/** What stands in the router for the page: its code is loaded when somebody comes. */
export class DashboardGate {
  readonly #open: () => Promise<Door>;
  #door: Promise<Door> | undefined;

  constructor(open: () => Promise<Door>) {
    this.#open = open;
  }

  serves(path: string): boolean {
    return path === "/dashboard" || path.startsWith("/dashboard/");
  }

  async handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    const door = await this.#opened();
    await door.handle(request, response, target);
  }

  async #opened(): Promise<Door> {
    const opening = (this.#door ??= this.#open());
    try {
      return await opening;
    } catch (error) {
      // The next who comes tries again.
      if (this.#door === opening) this.#door = undefined;
      throw error;
    }
  }
}
