import { z } from "zod";
import { fieldFacts } from "./field.ts";
import { isServerUrl } from "./value-rules.ts";

const MIN_KEY_BYTES = 32;

export const cluster = z
  .strictObject({
    key: z
      .string()
      .refine(
        (text) => text === "" || Buffer.byteLength(text) >= MIN_KEY_BYTES,
        `must be at least ${MIN_KEY_BYTES} bytes, such as the output of openssl rand -base64 32`,
      )
      .default("")
      .describe("Secret that servers behind one balancer share. With it a call finds its sandbox on any of them.")
      .register(fieldFacts, { secret: true }),
    url: z
      .string()
      .refine((text) => text === "" || isServerUrl(text), "must be an address such as https://10.0.0.5:8080")
      .default("")
      .describe("Where the other servers reach this one. Empty: the address that it listens on."),
  })
  .prefault({})
  .describe("Several servers that share the load.");
