import type { Conversation } from "../../pipeline/call.ts";

/**
 * A conversation for a call that was started before there is anything to talk through. The first word opens the
 * way; what is said until then waits for it.
 */
export class LateConversation {
  readonly conversation: Conversation;
  #opened = false;
  #attach: (conversation: Conversation) => void = () => {};

  constructor(open: () => void) {
    const ready = new Promise<Conversation>((resolve) => {
      this.#attach = resolve;
    });
    const use = (): Promise<Conversation> => {
      if (!this.#opened) {
        this.#opened = true;
        open();
      }
      return ready;
    };
    this.conversation = {
      wantsProgress: false,
      progress() {},
      log: (level, data, logger) => void use().then((live) => live.log(level, data, logger)),
      elicit: async (request, options) => (await use()).elicit(request, options),
      sample: async (request, options) => (await use()).sample(request, options),
      roots: async (options) => (await use()).roots(options),
      startTask: () => Promise.resolve(),
      listChanged: (kind) => void use().then((live) => live.listChanged(kind)),
      closeStream: () => void use().then((live) => live.closeStream()),
    };
  }

  /** Whether the call has something to say and somebody else must give the answer. */
  get isOpened(): boolean {
    return this.#opened;
  }

  attach(conversation: Conversation): void {
    this.#attach(conversation);
  }
}
