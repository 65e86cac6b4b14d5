import { z } from "zod";
import { count, fieldFacts, seconds } from "./field.ts";
import { isRedactRule } from "./redact-rule.ts";
import { isStoreUrl, isWebhookUrl } from "./value-rules.ts";

export const store = z
  .strictObject({
    url: z
      .string()
      .refine((text) => text === "" || isStoreUrl(text), "must be a URL such as postgres://user@host/database")
      .default("")
      .describe(
        "Where the ledger is kept and calls are counted. Empty: SQLite in the data folder; or postgres://… for several servers.",
      )
      .register(fieldFacts, { secret: true }),
  })
  .prefault({})
  .describe("What servers write down.");

export const ledger = z
  .strictObject({
    retentionDays: z
      .int()
      .min(0)
      .max(36_500)
      .default(0)
      .describe("Rows older than this are removed; a signed record stands for them. 0: all rows stay."),
    redact: z
      .array(
        z
          .string()
          .refine(
            isRedactRule,
            "must be the name of a key, or a pattern such as /acct-\\d{8}/ without nested repetition",
          ),
      )
      .default([])
      .describe("What else is taken out of arguments and results: names of keys, or patterns written as /…/."),
    checkpointEvery: count()
      .min(10)
      .default(1000)
      .describe("After how many rows the chain is signed and its head published."),
    checkpointMinutes: z
      .number()
      .min(0)
      .max(1440)
      .default(10)
      .describe(
        "How often the same is done by time, when there are new rows. 0: by rows alone, and when the server stops.",
      ),
    verifyHours: z
      .number()
      .min(0)
      .max(8760)
      .default(24)
      .describe("How often the server verifies the whole ledger, and alerts when it is not intact. 0: never."),
    keyFolder: z
      .string()
      .default("")
      .describe("Folder of the ledger's keys. Servers that share a store share it. Empty: keys in the data folder.")
      .register(fieldFacts, { path: "file" }),
  })
  .prefault({})
  .describe("The record of every call.");

export const alerts = z
  .strictObject({
    webhook: z
      .string()
      .refine((text) => text === "" || isWebhookUrl(text), "must be an https URL (http is accepted for loopback)")
      .default("")
      .describe("URL that gets alerts and the signed heads of the ledger, as JSON by POST. Empty: none.")
      .register(fieldFacts, { secret: true }),
    checkSeconds: seconds()
      .min(1)
      .default(15)
      .describe("How often the server looks at what it depends on, to tell when something breaks or is well again."),
  })
  .prefault({})
  .describe("Who is told when something is wrong.");
