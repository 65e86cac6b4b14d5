import { type ApiRoute, Events } from "./api.ts";
import type { PastSandbox } from "./contract-files.ts";
import { LiveHub } from "./live-hub.ts";
import type { NowBoard } from "./now-board.ts";

/** `now`, `live`, and what is left of a sandbox that has ended. */
export function liveRoutes(board: NowBoard): readonly ApiRoute[] {
  const hub = new LiveHub(board);
  return [
    {
      method: "GET",
      path: "now",
      answer: async () => {
        await board.look();
        return { ...board.now() };
      },
    },
    {
      method: "GET",
      path: "past-sandboxes/{id}",
      answer: ({ parts: [id = ""] }) => ({ ledgerId: board.ledgerIdOf(id) ?? null }) satisfies PastSandbox,
    },
    { method: "GET", path: "live", answer: () => new Events((sink) => hub.join(sink)) },
  ];
}
