import type { GuestParams, GuestResult } from "../../../contract/guest.ts";
import { extname } from "node:path";
import type { CDPSession, Page } from "playwright-core";
import { Failure, fileFailure } from "../../failure.ts";
import { replaceFile } from "../../files/write.ts";
import type { Workspace } from "../../paths.ts";
import { assertAllowedPage } from "./allowed-addresses.ts";
import { explainAction } from "./action-failure.ts";
import { locate } from "./locate.ts";
import { refuseSickPage } from "./within.ts";
import type { BrowserSession } from "./session.ts";

/** The longest texture of the browser. */
const SIDE_MAX_PX = 16_000;
/** The maximum of a PNG for a model; a larger picture is sent as JPEG. */
const PICTURE_BYTES_MAX = 1_500_000;
const JPEG_QUALITY = 80;

interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export async function takeScreenshot(
  session: BrowserSession,
  params: GuestParams["browser.screenshot"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.screenshot">> {
  const { maxSidePx } = params;
  const tab = await session.tab();
  await assertAllowedPage(session, tab);
  const { page } = tab;
  const path = params.path ?? `screenshots/screenshot-${session.nextPicture()}.png`;
  const place = session.workspace.resolve(path);
  const area = await areaOf(session, page, params, signal);
  const cdp = await session.context.newCDPSession(page);
  try {
    const format = /^\.jpe?g$/i.test(extname(place)) ? "jpeg" : "png";
    const whole = await capture(cdp, area, { scale: 1, format });
    const sizeBytes = writeInto(session.workspace, path, whole);
    const scale = Math.min(1, maxSidePx / Math.max(area.width, area.height));
    const picture = await pictureOf(cdp, area, { scale, whole, format });
    const { width, height } = area;
    return { ...(await session.describe()), path, width, height, sizeBytes, picture };
  } finally {
    await cdp.detach().catch(() => {});
  }
}

/** The visible area in pixels of the page. */
async function areaOf(
  session: BrowserSession,
  page: Page,
  { selector, fullPage, timeoutMs }: GuestParams["browser.screenshot"],
  signal: AbortSignal,
): Promise<Area> {
  if (selector !== undefined) return await elementArea(session, selector, { timeoutMs, signal });
  const viewport = page.viewportSize() ?? { width: 1280, height: 720 };
  const seen = await page.evaluate(
    // A page that has just begun to load may have no element.
    "({ x: scrollX, y: scrollY, width: document.documentElement?.scrollWidth ?? 0, height: document.documentElement?.scrollHeight ?? 0 })",
  );
  const { x, y, width, height } = toArea(seen);
  if (!fullPage) return { x, y, ...viewport };
  if (height > SIDE_MAX_PX) session.note(`the page is ${height} px high; the picture has the first ${SIDE_MAX_PX}`);
  return {
    x: 0,
    y: 0,
    width: Math.min(SIDE_MAX_PX, Math.max(viewport.width, width)),
    height: Math.min(SIDE_MAX_PX, Math.max(viewport.height, height)),
  };
}

async function elementArea(
  session: BrowserSession,
  selector: string,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Area> {
  try {
    const { locator, page } = await locate(session, selector);
    await locator.scrollIntoViewIfNeeded({ timeout: timeoutMs, signal });
    const box = await locator.boundingBox({ timeout: timeoutMs, signal });
    if (box === null || box.width < 1 || box.height < 1) {
      throw new Failure(
        "element_hidden",
        `the element is not visible (selector=${JSON.stringify(selector)})`,
        "open what hides it, then try again",
      );
    }
    const scroll = toArea(await page.evaluate("({ x: scrollX, y: scrollY, width: 0, height: 0 })"));
    const width = Math.min(SIDE_MAX_PX, Math.ceil(box.width));
    return { x: box.x + scroll.x, y: box.y + scroll.y, width, height: Math.min(SIDE_MAX_PX, Math.ceil(box.height)) };
  } catch (error) {
    await refuseSickPage(session, error);
    throw explainAction(error, { selector, timeoutMs });
  }
}

/** Validates the answer of the page. */
function toArea(value: unknown): Area {
  const read = (name: string): number => {
    const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
    return typeof found === "number" && Number.isFinite(found) ? Math.max(0, Math.round(found)) : 0;
  };
  return { x: read("x"), y: read("y"), width: read("width"), height: read("height") };
}

interface CaptureOptions {
  readonly scale: number;
  readonly format: "png" | "jpeg";
}

async function capture(cdp: CDPSession, area: Area, { scale, format }: CaptureOptions): Promise<Buffer> {
  const { data } = await cdp.send("Page.captureScreenshot", {
    format,
    ...(format === "jpeg" && { quality: JPEG_QUALITY }),
    clip: { ...area, scale },
    captureBeyondViewport: true,
  });
  return Buffer.from(data, "base64");
}

/** The picture for a model, at most as large as requested. */
async function pictureOf(
  cdp: CDPSession,
  area: Area,
  { scale, whole, format }: CaptureOptions & { readonly whole: Buffer },
): Promise<GuestResult<"browser.screenshot">["picture"]> {
  const first = scale === 1 ? whole : await capture(cdp, area, { scale, format });
  if (first.length <= PICTURE_BYTES_MAX) return toPicture(first, format);
  return toPicture(await capture(cdp, area, { scale, format: "jpeg" }), "jpeg");
}

function toPicture(bytes: Buffer, format: "png" | "jpeg"): GuestResult<"browser.screenshot">["picture"] {
  return { mimeType: `image/${format}`, data: bytes.toString("base64") };
}

export async function savePdf(
  session: BrowserSession,
  { path }: GuestParams["browser.pdf"],
): Promise<GuestResult<"browser.pdf">> {
  session.workspace.resolve(path);
  const tab = await session.tab();
  await assertAllowedPage(session, tab);
  const bytes = await tab.page.pdf({ printBackground: true });
  return { ...(await session.describe()), path, sizeBytes: writeInto(session.workspace, path, bytes) };
}

function writeInto(workspace: Workspace, path: string, content: Buffer): number {
  if (path.endsWith("/")) throw new Failure("not_a_file", `${path}: it names a folder`, "name a file in it");
  const place = workspace.openPlace(path);
  try {
    return replaceFile(place, { content, mode: undefined, mustBeNew: false });
  } catch (error) {
    throw fileFailure(error, path);
  } finally {
    place.close();
  }
}
