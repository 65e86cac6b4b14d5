import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import type { ContentBlock } from "../../capability/content.ts";
import { defineSandboxTool, type Outcome, type SandboxTool } from "../sandbox-tool.ts";
import { sandboxUri } from "../sandbox-uri.ts";
import type { ToolLimits } from "../tool-services.ts";
import { browserTimeout, NAVIGATE_SECONDS, pageFields, pageShape, selectorField, toMs } from "./browser-fields.ts";
import { askedPath } from "../workspace-path.ts";

/** Models scale larger pictures down themselves, and charge for it. */
const MAX_SIDE_PX = 1568;

export function browserScreenshot(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser",
    title: "Take a picture of the page",
    description: `Takes a picture of what the browser shows, returns it as an image, and writes it to a file in ${limits.workspacePath}. A large picture is returned scaled down; the file has it in full. Use browser_snapshot to read a page or to get refs.`,
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: true },
    scope: "workspace",
    input: {
      path: z
        .string()
        .min(1)
        .optional()
        .describe("Where to write it, in the workspace; .png or .jpg. Default: screenshots/screenshot-N.png."),
      full_page: z.boolean().default(false).describe("The whole page, not only what is in view."),
      selector: selectorField.optional().describe("Only this element: a ref or a CSS selector."),
      timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS),
    },
    output: {
      ...pageShape,
      path: z.string(),
      uri: z.string().describe("The file as a resource."),
      width: z.number(),
      height: z.number(),
      size_bytes: z.number(),
    },
    run: async ({ sandbox, signal }, { path, full_page: fullPage, selector, timeout_seconds: seconds }) => {
      const params = {
        ...(path !== undefined && { path }),
        fullPage,
        ...(selector !== undefined && { selector }),
        maxSidePx: MAX_SIDE_PX,
        timeoutMs: toMs(seconds),
      };
      const result = await sandbox.browse("browser.screenshot", params, { signal });
      return toOutcome(result, path === undefined ? "a new file" : askedPath(path, limits), sandbox.facts.id);
    },
  });
}

function toOutcome(result: GuestResult<"browser.screenshot">, asked: string, sandboxId: string): Outcome {
  const { path, width, height, sizeBytes, picture } = result;
  const file = { path, uri: sandboxUri(sandboxId, path), width, height, size_bytes: sizeBytes };
  const image: ContentBlock = { type: "image", ...picture };
  return {
    summary: `${asked} (${width}x${height})`,
    value: { ...pageFields(result), ...file },
    blocks: [image],
  };
}
