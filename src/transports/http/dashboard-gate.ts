import type { IncomingMessage, ServerResponse } from "node:http";
import type { DashboardDoor } from "./dashboard-door.ts";
import type { RequestTarget } from "./request-target.ts";

/** What stands in the router for the page: its code is loaded when somebody comes. */
export class DashboardGate {
  readonly #open: () => Promise<DashboardDoor>;
  #door: Promise<DashboardDoor> | undefined;

  constructor(open: () => Promise<DashboardDoor>) {
    this.#open = open;
  }

  serves(path: string): boolean {
    return path === "/dashboard" || path.startsWith("/dashboard/");
  }

  async handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    this.#door ??= this.#open();
    const door = await this.#door;
    await door.handle(request, response, target);
  }
}
