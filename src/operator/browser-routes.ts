import * as z from "zod";
import type { GuestParams } from "../sandbox/guest-methods.ts";
import { type ApiRoute, Events } from "./api.ts";
import { BrowserWatch } from "./browser-watch.ts";
import { bodyAs } from "./request-body.ts";
import type { SandboxDesk } from "./sandbox-desk.ts";
import type { Takeovers } from "./takeovers.ts";

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

/** `sandboxes/{id}/browser`: its picture, and hands for whoever has taken the sandbox over. */
export function browserRoutes(desk: SandboxDesk, takeovers: Pick<Takeovers, "renew">): readonly ApiRoute[] {
  const watch = new BrowserWatch(desk);
  return [
    {
      method: "GET",
      path: "sandboxes/{id}/browser",
      answer: ({ parts: [id = ""] }) => {
        desk.get(id);
        return new Events((sink) => watch.join(id, sink));
      },
    },
    {
      method: "POST",
      path: "sandboxes/{id}/browser/input",
      answer: async ({ operator, parts: [id = ""], body, signal }) => {
        const input = toInput(bodyAs(inputSchema, body));
        takeovers.renew(operator, id);
        await desk.record(operator, id, { name: "browser_input", args: onRecord(input) });
        return desk.use(id, async (sandbox) => {
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

/** What is typed into a page is often a password: its length is enough. */
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
