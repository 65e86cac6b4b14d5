import type { ContentBlock } from "../../capability/content.ts";
import { sandboxUri } from "../sandbox-uri.ts";
import type { CodeResult } from "./run-code.ts";

/** Plots and images for the model, and the HTML form of a value for the person who looks on. */
export function pictureBlocks({ pictures, value }: CodeResult, sandboxId: string): ContentBlock[] {
  const images = pictures.map(({ mimeType, data }): ContentBlock => ({ type: "image", mimeType, data }));
  if (value?.html === undefined || value.file === undefined) return images;
  const html: ContentBlock = {
    type: "resource",
    resource: { uri: sandboxUri(sandboxId, value.file), mimeType: "text/html", text: value.html },
    annotations: { audience: ["user"] },
  };
  return [...images, html];
}
