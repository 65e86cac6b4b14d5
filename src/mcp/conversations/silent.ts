import type { Changes } from "../../capability/registry.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Conversation } from "../../call/call.ts";

/** For callers that can only receive the answer: nothing is sent while the call runs, and no question can be asked. */
export function silentConversation(changes: Changes): Conversation {
  return {
    wantsProgress: false,
    progress() {},
    log() {},
    elicit: () => cannotAsk("elicitation"),
    sample: () => cannotAsk("sampling"),
    roots: () => cannotAsk("roots"),
    startTask: () => Promise.resolve(),
    listChanged: (kind) => changes.listChanged(kind),
    closeStream() {},
  };
}

function cannotAsk(capability: string): Promise<never> {
  const error = new OwlError(
    "missing_capability",
    `this client cannot be asked: its connection has no way back (${capability})`,
    {
      facts: { requiredCapabilities: { [capability]: {} } },
      hint: "connect with a session (initialize), or over stdio",
    },
  );
  return Promise.reject(error);
}
