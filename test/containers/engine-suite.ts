import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineAttackSuite } from "../escape/sandbox-attack-suite.ts";
import { defineFloodSuite } from "../escape/sandbox-flood-suite.ts";
import { type ContainerEngine, type EngineKind, startEngine, whyNoEngine } from "../services/container-engine.ts";
import { defineLifeSuite } from "./engine-life-suite.ts";
import { defineReachSuite } from "./engine-reach-suite.ts";
import { containers, settingsFor } from "./engine-runtime.ts";

const IS_LONG = process.env["OWLCLAW_TEST_LONG"] === "1";

/** Everything that sandboxes promise, in containers of one engine. */
export function defineEngineSuite(kind: EngineKind): void {
  const reason = whyNoEngine(kind);
  let engine: ContainerEngine;

  beforeAll(async () => {
    if (reason === undefined) engine = await startEngine(kind);
  });
  afterAll(async () => await engine?.stop());
  beforeEach((context) => {
    if (reason !== undefined) context.skip(reason);
  });

  describe.skipIf(reason !== undefined)(`in containers of ${kind},`, () => {
    defineToolSuite(["http"], () => settingsFor(engine));
    describe("attacks:", () => defineAttackSuite(containers(() => engine)));
    describe("lives:", () => defineLifeSuite(() => engine));
    describe("reach:", () => defineReachSuite(() => engine));
    // Minutes long. The probe of each server that starts here tries the same limits.
    if (IS_LONG) describe("floods:", () => defineFloodSuite(containers(() => engine)));
  });
}
