import { expect, test } from "vitest";
import { callsInLivesHeldAgainstModel } from "./limit-model.ts";
import { sqliteLab } from "./limits.ts";

test("[004-R8.4] two servers on one store never let through what the model forbids, nor refuse what it allows", async () => {
  // A run in which nothing passes would prove nothing.
  expect(await callsInLivesHeldAgainstModel(sqliteLab(), { numRuns: 60, countsLater: true })).toBeGreaterThan(5);
});

test("[004-R8.4] a server that has the file for itself, and counts in memory, holds to the model as well", async () => {
  expect(
    await callsInLivesHeldAgainstModel(sqliteLab(), { numRuns: 60, servers: 1, countsLater: true }),
  ).toBeGreaterThan(5);
});
