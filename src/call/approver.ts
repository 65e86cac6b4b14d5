import type { Approver } from "../governance/approval/confirm.ts";
import { isOwlError } from "../errors/owl-error.ts";
import type { Call } from "./call.ts";

const TICK_MS = 5000;
/** Far below whatever the capability will report itself: progress must only ever rise. */
const SMALL = 1_000_000;

const YES = {
  type: "object",
  properties: { approve: { type: "boolean", title: "Approve", description: "Whether this call may run." } },
  required: ["approve"],
} as const;

/** Lends governance the call's own ways to ask and to wait. */
export function approverOf({ conversation, life, traceId, onPassed }: Call): Approver {
  onPassed?.();
  return {
    traceId,
    async askClient({ message, key }) {
      try {
        const answer = await conversation.elicit({ message, requestedSchema: YES }, { key });
        return answer.action === "accept" && answer.content?.["approve"] === true;
      } catch (error) {
        if (isOwlError(error) && error.kind === "missing_capability") return false;
        throw error;
      }
    },
    whileWaiting() {
      if (!conversation.wantsProgress) return () => undefined;
      let seconds = 0;
      const tell = (): void => {
        conversation.progress((seconds + 1) / SMALL, {
          message: `waiting for an operator's approval for ${seconds} s`,
        });
        seconds += TICK_MS / 1000;
      };
      tell();
      const timer = setInterval(tell, TICK_MS);
      timer.unref();
      return () => clearInterval(timer);
    },
    onGone: (leave) => void life.onEnd(leave),
  };
}
