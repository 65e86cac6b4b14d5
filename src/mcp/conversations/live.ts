import type { LogLevel } from "../../capability/context.ts";
import type { Changes } from "../../capability/registry.ts";
import type { Conversation } from "../../call/call.ts";
import type { ClientCapabilities } from "../exchange.ts";
import type { JsonRpcNotification } from "../json-rpc.ts";
import { isAtLeast } from "../request-envelope.ts";
import { assertCanAnswer, type Question, asking } from "./questions.ts";

export interface LiveOptions {
  /** Sends a message that belongs to the request. */
  readonly send: (message: JsonRpcNotification) => void;
  readonly capabilities: ClientCapabilities;
  readonly changes: Changes;
  readonly progressToken: unknown;
  /** The lowest level of the log messages that the client wants; none without one. */
  readonly lowestLevel: LogLevel | undefined;
  /** Sends a question to the client as a separate request; absent when the revision has no such requests. */
  readonly ask: ((question: Question) => Promise<unknown>) | undefined;
  readonly closeStream: () => void;
}

/** Communicates with the client while its request is open. */
export function liveConversation(options: LiveOptions): Conversation {
  const { send, capabilities, changes, progressToken, lowestLevel, ask, closeStream } = options;
  let last = Number.NEGATIVE_INFINITY;
  return {
    wantsProgress: progressToken !== undefined,
    progress(done, { total, message } = {}) {
      // The protocol requires rising values, so a report that does not rise is dropped.
      if (progressToken === undefined || !(done > last)) return;
      last = done;
      const params = {
        progressToken,
        progress: done,
        ...(total !== undefined && { total }),
        ...(message !== undefined && { message }),
      };
      send({ jsonrpc: "2.0", method: "notifications/progress", params });
    },
    log(level, data, logger) {
      if (lowestLevel === undefined || !isAtLeast(level, lowestLevel)) return;
      send({ jsonrpc: "2.0", method: "notifications/message", params: { level, data, logger } });
    },
    ...asking(async (question) => {
      assertCanAnswer(question, capabilities);
      if (ask === undefined) throw new TypeError("this revision asks through the result");
      return ask(question);
    }),
    startTask: () => Promise.resolve(),
    listChanged: (kind) => changes.listChanged(kind),
    closeStream,
  };
}
