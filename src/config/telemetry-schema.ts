import { z } from "zod";
import { fieldFacts } from "./field.ts";

export const logging = z
  .strictObject({
    level: z
      .enum(["debug", "info", "warning", "error"])
      .default("info")
      .describe("Lines below this level are not written. A change in the file counts at once."),
    format: z
      .enum(["json", "pretty"])
      .default("json")
      .describe("Form of log lines on stderr. On a terminal, pretty unless it is set."),
    file: z
      .string()
      .default("")
      .describe("File that gets the log too, as JSON lines. Empty: none.")
      .register(fieldFacts, { path: "file" }),
    fileMaxBytes: z
      .int()
      .min(10_000)
      .max(10_000_000_000)
      .default(10_000_000)
      .describe("A log file that would grow beyond this is moved aside, and a new one begins."),
    fileKeep: z.int().min(0).max(100).default(5).describe("How many older log files stay."),
  })
  .prefault({})
  .describe("Log lines on stderr and in a file.");

/** A host and a port; an address of version 6 stands in brackets. */
const ADDRESS = /^(?:\[[0-9a-fA-F:.]{2,45}\]|[\w.-]{1,253}):\d{1,5}$/;

export const telemetry = z
  .strictObject({
    metrics: z.boolean().default(true).describe("Counts calls, times and resources, and shows them at /metrics."),
    metricsAddress: z
      .string()
      .refine((text) => text === "" || ADDRESS.test(text), "must be host:port, such as 127.0.0.1:9464")
      .default("")
      .describe("Address of a listener of their own for metrics; whoever reaches it may read them. Empty: none."),
  })
  .prefault({})
  .describe("What can be measured from outside.");
