import { defineHandler } from "owlclaw";
import { RED_PIXEL_PNG, SILENT_WAV } from "../sample-media.ts";

const effect = { readOnly: true, destructive: false, idempotent: true, openWorld: false };

export const simpleText = defineHandler({
  name: "test_simple_text",
  description: "Answers with a line of text",
  effect,
  run: () => "This is a simple text response for testing.",
});

export const imageContent = defineHandler({
  name: "test_image_content",
  description: "Answers with an image",
  effect,
  run: () => [{ type: "image", data: RED_PIXEL_PNG, mimeType: "image/png" }],
});

export const audioContent = defineHandler({
  name: "test_audio_content",
  description: "Answers with a sound",
  effect,
  run: () => [{ type: "audio", data: SILENT_WAV, mimeType: "audio/wav" }],
});

export const embeddedResource = defineHandler({
  name: "test_embedded_resource",
  description: "Answers with an embedded resource",
  effect,
  run: () => [
    {
      type: "resource",
      resource: {
        uri: "test://embedded-resource",
        mimeType: "text/plain",
        text: "This is an embedded resource content.",
      },
    },
  ],
});

export const multipleContentTypes = defineHandler({
  name: "test_multiple_content_types",
  description: "Answers with text, an image and an embedded resource",
  effect,
  run: () => [
    { type: "text", text: "Multiple content types test:" },
    { type: "image", data: RED_PIXEL_PNG, mimeType: "image/png" },
    {
      type: "resource",
      resource: {
        uri: "test://mixed-content-resource",
        mimeType: "application/json",
        text: JSON.stringify({ test: "data", value: 123 }),
      },
    },
  ],
});

export const errorHandling = defineHandler({
  name: "test_error_handling",
  description: "Answers with an error that a model can read",
  effect,
  run: () => ({
    isError: true,
    content: [{ type: "text", text: "This tool intentionally returns an error for testing" }],
  }),
});
