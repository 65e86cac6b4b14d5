import { definePrompt } from "owlclaw";
import { z } from "zod";
import { RED_PIXEL_PNG } from "../sample-media.ts";

export const simplePrompt = definePrompt({
  name: "test_simple_prompt",
  title: "Simple Test Prompt",
  description: "A prompt without arguments",
  run: () => "This is a simple prompt for testing.",
});

export const promptWithArguments = definePrompt({
  name: "test_prompt_with_arguments",
  title: "Prompt With Arguments",
  description: "A prompt with two required arguments",
  arguments: z.object({
    arg1: z.string().describe("First test argument"),
    arg2: z.string().describe("Second test argument"),
  }),
  complete: { arg1: (value) => ["paris", "park", "party"].filter((word) => word.startsWith(value)) },
  run: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
});

export const promptWithEmbeddedResource = definePrompt({
  name: "test_prompt_with_embedded_resource",
  title: "Prompt With Embedded Resource",
  description: "A prompt that carries a resource",
  arguments: z.object({ resourceUri: z.string().describe("URI of the resource to embed") }),
  run: ({ resourceUri }) => [
    {
      role: "user",
      content: {
        type: "resource",
        resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." },
      },
    },
    { role: "user", content: { type: "text", text: "Please process the embedded resource above." } },
  ],
});

export const promptWithImage = definePrompt({
  name: "test_prompt_with_image",
  title: "Prompt With Image",
  description: "A prompt that carries an image",
  run: () => [
    { role: "user", content: { type: "image", data: RED_PIXEL_PNG, mimeType: "image/png" } },
    { role: "user", content: { type: "text", text: "Please analyze the image above." } },
  ],
});
