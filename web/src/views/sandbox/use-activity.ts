import { useEffect, useState } from "preact/hooks";
import type { Activity } from "../../../../src/dashboard/activity.ts";
import { fromAnswer } from "../../server/answer-text.ts";
import type { StreamState } from "../../server/event-stream.ts";
import { useStream } from "../../server/use-stream.ts";

export interface ActivityFeed {
  readonly entries: readonly Activity[];
  readonly state: StreamState;
}

/** As many as a page can show without getting slow; the server replays five hundred. */
const MOST_ENTRIES = 5_000;

/** What happened in a sandbox, as it happens. After a reconnect the replay is not shown twice. */
export function useActivity(id: string, isWanted: (entry: Activity) => boolean): ActivityFeed {
  const [entries, setEntries] = useState<readonly Activity[]>([]);
  useEffect(() => setEntries([]), [id]);
  const state = useStream(`sandboxes/${encodeURIComponent(id)}/activity`, {
    activity: (data) => {
      const entry = fromAnswer<Activity>(data);
      if (!isWanted(entry)) return;
      setEntries((last) => {
        const newest = last.at(-1)?.seq ?? -1;
        return entry.seq <= newest ? last : [...last.slice(1 - MOST_ENTRIES), entry];
      });
    },
  });
  return { entries, state };
}
