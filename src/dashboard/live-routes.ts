import { type ApiRoute, Events } from "./api.ts";
import { LiveHub } from "./live-hub.ts";
import type { NowBoard } from "./now-board.ts";

/** `now` and `live`. */
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
    { method: "GET", path: "live", answer: () => new Events((sink) => hub.join(sink)) },
  ];
}
