import type { GuestParams } from "../../contract/guest.ts";
import * as z from "zod";
import { type ApiRoute, Events, type EventSink } from "./api.ts";
import { bodyAs } from "./request-body.ts";
import type { OperatorSandboxService } from "./sandbox-service.ts";
import type { Takeovers } from "./takeovers.ts";
import type { BrowserPicture } from "./contract-files.ts";

const INPUT_TIMEOUT_MS = 10_000;
const MAX_PX = 20_000;
const MAX_TEXT_CHARS = 10_000;

const px = z.number().min(0).max(MAX_PX);
const inputSchema = z.union([
  z.strictObject({ click: z.strictObject({ x: px, y: px }) }),
  z.strictObject({ type: z.string().max(MAX_TEXT_CHARS) }),
  z.strictObject({ key: z.string().min(1).max(64) }),
  z.strictObject({ scroll: z.strictObject({ x: px, y: px, dy: z.number().min(-MAX_PX).max(MAX_PX) }) }),
]);

type Input = Omit<GuestParams["browser.input"], "timeoutMs">;
const NOTHING: Input = { kind: "click", x: 0, y: 0, text: "", amount: 0, isUp: false };

/** `sandboxes/{id}/browser`: screenshots, and input from the operator who has taken the sandbox over. */
export function browserRoutes(
  service: OperatorSandboxService,
  takeovers: Pick<Takeovers, "renew">,
): readonly ApiRoute[] {
  const watch = new BrowserWatch(service);
  return [
    {
      method: "GET",
      path: "sandboxes/{id}/browser",
      answer: ({ parts: [id = ""] }) => {
        service.get(id);
        return new Events((sink) => watch.join(id, sink));
      },
    },
    {
      method: "POST",
      path: "sandboxes/{id}/browser/input",
      answer: async ({ operator, parts: [id = ""], body, signal }) => {
        const input = toInput(bodyAs(inputSchema, body));
        takeovers.renew(operator, id);
        await service.record(operator, id, { name: "browser_input", args: onRecord(input) });
        return service.use(id, async (sandbox) => {
          const params = { ...input, timeoutMs: INPUT_TIMEOUT_MS };
          await sandbox.request("browser.input", params, { timeoutMs: 2 * INPUT_TIMEOUT_MS, signal });
          return {};
        });
      },
    },
  ];
}

function toInput(body: z.output<typeof inputSchema>): Input {
  if ("click" in body) return { ...NOTHING, ...whole(body.click) };
  if ("type" in body) return { ...NOTHING, kind: "type", text: body.type };
  if ("key" in body) return { ...NOTHING, kind: "key", text: body.key };
  const { dy, ...at } = body.scroll;
  return { ...NOTHING, kind: "scroll", ...whole(at), amount: Math.round(Math.abs(dy)), isUp: dy < 0 };
}

function whole({ x, y }: { readonly x: number; readonly y: number }): { readonly x: number; readonly y: number } {
  return { x: Math.round(x), y: Math.round(y) };
}

/** Typed text is often a password, so only its length is recorded. */
function onRecord({ kind, x, y, text, amount, isUp }: Input): Readonly<Record<string, unknown>> {
  switch (kind) {
    case "click":
      return { kind, x, y };
    case "type":
      return { kind, characters: text.length };
    case "key":
      return { kind, key: text };
    case "scroll":
      return { kind, x, y, dy: isUp ? -amount : amount };
  }
}

/** At most a little more than one screenshot a second. */
const LOOK_MS = 700;
const PICTURE_TIMEOUT_MS = 5000;
const MAX_IMAGE_CHARS = 3_000_000;

interface Watch {
  readonly viewers: Set<EventSink>;
  timer: NodeJS.Timeout | undefined;
  /** The last event that was sent. */
  shown: { readonly event: string; readonly data: string } | undefined;
}

/**
 * Takes screenshots while an operator watches. One screenshot serves all viewers, and none is taken while the agent
 * uses the browser.
 */
export class BrowserWatch {
  readonly #service: OperatorSandboxService;
  readonly #watches = new Map<string, Watch>();

  constructor(service: OperatorSandboxService) {
    this.#service = service;
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
      // A page that is busy or closed has no screenshot now. The next attempt may succeed.
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
    const isBusy = this.#service.activity.runningIn(instanceId)?.startsWith("browser") === true;
    if (isBusy) return undefined;
    const sandbox = this.#service.get(instanceId);
    const params = { timeoutMs: PICTURE_TIMEOUT_MS };
    const found = await sandbox.request("browser.picture", params, { timeoutMs: 4 * PICTURE_TIMEOUT_MS });
    if (!found.isRunning) return { event: "none", data: "{}" };
    const { url, title, data: image, width, height } = found;
    // A compromised guest may send any data.
    if (image.length > MAX_IMAGE_CHARS) return undefined;
    const picture: BrowserPicture = { url, title, image, width, height };
    return { event: "picture", data: JSON.stringify(picture) };
  }
}
