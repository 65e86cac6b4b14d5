import { expect, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { askedFor } from "../../../src/cli/doctor/isolation-probe.ts";

test.each([
  ["auto", "microsandbox", ["microsandbox"]],
  ["auto", "bubblewrap", ["docker"]],
  ["auto", undefined, ["docker"]],
  ["microsandbox", "microsandbox", ["microsandbox", "microsandbox"]],
  ["bubblewrap", "bubblewrap", ["bubblewrap", "docker"]],
] as const)("a template's image needs what starts it: with runtime %s that takes %s, %j", (runtime, taken, needed) => {
  const config = configSchema.parse({ sandbox: { runtime, templates: { science: { image: "science:3" } } } });
  expect(askedFor(config, taken)).toEqual(needed);
});
