import { defineResource } from "owlclaw";
import { RED_PIXEL_PNG } from "../sample-media.ts";

const CHANGE_EVERY_MS = 3000;

export const staticText = defineResource({
  uri: "test://static-text",
  name: "static-text",
  title: "Static Text Resource",
  description: "A text that never changes",
  mimeType: "text/plain",
  read: () => "This is the content of the static text resource.",
});

export const staticBinary = defineResource({
  uri: "test://static-binary",
  name: "static-binary",
  title: "Static Binary Resource",
  description: "An image that never changes",
  mimeType: "image/png",
  read: () => Buffer.from(RED_PIXEL_PNG, "base64"),
});

export const template = defineResource({
  uri: "test://template/{id}/data",
  name: "template",
  title: "Resource Template",
  description: "Data for any id",
  mimeType: "application/json",
  complete: { id: (value) => ["123", "456"].filter((id) => id.startsWith(value)) },
  read: (_uri, { id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
});

export const watched = defineResource({
  uri: "test://watched-resource",
  name: "watched-resource",
  title: "Watched Resource",
  description: "A resource that changes every three seconds",
  mimeType: "text/plain",
  read: () => `Watched resource content at ${new Date().toISOString()}`,
  watch(changed, signal) {
    const timer = setInterval(changed, CHANGE_EVERY_MS).unref();
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  },
});
