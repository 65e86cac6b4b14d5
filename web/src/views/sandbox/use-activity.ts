import { useState } from "preact/hooks";
import type { Activity } from "../../../../src/operator/activity-log.ts";
import { fromAnswer } from "../../server/answer-text.ts";
import type { StreamState } from "../../server/event-stream.ts";
import { isLast, pathOf, type ShownSandbox } from "./shown-sandbox.ts";
import { useStream } from "../../server/use-stream.ts";

export interface ActivityFeed {
  readonly entries: readonly Activity[];
  readonly state: StreamState;
}

/** As many as the page can show without becoming slow. The server replays at most 500. */
const MOST_ENTRIES = 5_000;

/** The activity of a sandbox, live. Entries that are replayed after a reconnect are skipped. */
export function useActivity(sandbox: ShownSandbox, isWanted: (entry: Activity) => boolean): ActivityFeed {
  const [entries, setEntries] = useState<readonly Activity[]>([]);
  const state = useStream(pathOf(sandbox, "activity"), {
    activity: (data) => {
      const entry = fromAnswer<Activity>(data);
      if (isLast(entry)) return "end";
      if (!isWanted(entry)) return undefined;
      setEntries((last) => {
        const newest = last.at(-1)?.seq ?? -1;
        return entry.seq <= newest ? last : [...last.slice(1 - MOST_ENTRIES), entry];
      });
      return undefined;
    },
  });
  return { entries, state };
}
