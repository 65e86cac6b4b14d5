import type { ServerContext } from "@modelcontextprotocol/server";
import type { Changes } from "../../capabilities/changes.ts";
import type { LogLevel } from "../../capabilities/context.ts";
import type { Conversation } from "../../pipeline/call.ts";
import type { ClientCapabilities } from "../exchange.ts";
import { asking } from "./asking.ts";
import { assertCanAnswer, type Question } from "./questions.ts";

export interface LiveOptions {
  readonly context: ServerContext;
  readonly capabilities: ClientCapabilities;
  readonly changes: Changes;
  /** Puts a question to the client as a request of its own; absent where the revision has none. */
  readonly request: ((question: Question) => Promise<unknown>) | undefined;
  readonly closeStream: () => void;
}

/** Talks to the client through the SDK while its request is open. */
export function liveConversation({ context, capabilities, changes, request, closeStream }: LiveOptions): Conversation {
  const token = context.mcpReq._meta?.progressToken;
  let last = Number.NEGATIVE_INFINITY;
  const ask = async (question: Question): Promise<unknown> => {
    assertCanAnswer(question, capabilities);
    if (request === undefined) throw new TypeError("this revision asks through the result");
    return request(question);
  };
  return {
    wantsProgress: token !== undefined,
    progress(done, { total, message } = {}) {
      // The protocol wants rising values; a report that does not rise tells nothing new.
      if (token === undefined || !(done > last)) return;
      last = done;
      const params = {
        progressToken: token,
        progress: done,
        ...(total !== undefined && { total }),
        ...(message !== undefined && { message }),
      };
      void context.mcpReq.notify({ method: "notifications/progress", params }).catch(ignoreGoneClient);
    },
    log(level: LogLevel, data, logger) {
      void context.mcpReq.log(level, data, logger).catch(ignoreGoneClient);
    },
    ...asking(ask),
    startTask: () => Promise.resolve(),
    listChanged: (kind) => changes.listChanged(kind),
    closeStream,
  };
}

/** A client that has gone away cannot be told; its request is cancelled through its signal. */
function ignoreGoneClient(): void {}
