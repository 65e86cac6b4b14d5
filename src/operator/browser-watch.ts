import type { EventSink } from "./api.ts";
import type { BrowserPicture } from "./contract-files.ts";
import type { SandboxDesk } from "./sandbox-desk.ts";

/** A little more than one picture a second at most. */
const LOOK_MS = 700;
const PICTURE_TIMEOUT_MS = 5000;
const MAX_IMAGE_CHARS = 3_000_000;

interface Watch {
  readonly viewers: Set<EventSink>;
  timer: NodeJS.Timeout | undefined;
  /** The last that was shown, as it was sent. */
  shown: { readonly event: string; readonly data: string } | undefined;
}

/** The pictures of browsers, as long as somebody looks. One is taken for all who do, and none while the agent works with it. */
export class BrowserWatch {
  readonly #desk: SandboxDesk;
  readonly #watches = new Map<string, Watch>();

  constructor(desk: SandboxDesk) {
    this.#desk = desk;
  }

  join(instanceId: string, viewer: EventSink): () => void {
    const watch = this.#watches.get(instanceId) ?? { viewers: new Set(), timer: undefined, shown: undefined };
    const isFirst = watch.viewers.size === 0;
    this.#watches.set(instanceId, watch);
    watch.viewers.add(viewer);
    if (watch.shown !== undefined) viewer.send(watch.shown.event, watch.shown.data);
    if (isFirst) this.#look(instanceId, watch);
    return () => {
      watch.viewers.delete(viewer);
      if (watch.viewers.size > 0) return;
      clearTimeout(watch.timer);
      this.#watches.delete(instanceId);
    };
  }

  #look(instanceId: string, watch: Watch): void {
    void this.#picture(instanceId)
      // A page that is busy or gone has no picture now; it may have one later.
      .catch(() => undefined)
      .then((next) => {
        if (watch.viewers.size === 0) return;
        if (next !== undefined && next.data !== watch.shown?.data) {
          watch.shown = next;
          for (const viewer of watch.viewers) viewer.send(next.event, next.data);
        }
        watch.timer = setTimeout(() => this.#look(instanceId, watch), LOOK_MS);
        watch.timer.unref();
      });
  }

  async #picture(instanceId: string): Promise<Watch["shown"]> {
    const isBusy = this.#desk.activity.runningIn(instanceId)?.startsWith("browser") === true;
    if (isBusy) return undefined;
    const sandbox = this.#desk.get(instanceId);
    const params = { timeoutMs: PICTURE_TIMEOUT_MS };
    const found = await sandbox.request("browser.picture", params, { timeoutMs: 4 * PICTURE_TIMEOUT_MS });
    if (!found.isRunning) return { event: "none", data: "{}" };
    const { url, title, data: image, width, height } = found;
    // Whoever has taken the guest over may send what it likes.
    if (image.length > MAX_IMAGE_CHARS) return undefined;
    const picture: BrowserPicture = { url, title, image, width, height };
    return { event: "picture", data: JSON.stringify(picture) };
  }
}
