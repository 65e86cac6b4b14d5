import { describe } from "vitest";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineAttackSuite } from "../escape/sandbox-attack-suite.ts";
import type { EngineKind } from "../services/container-engine.ts";
import { defineLifeSuite } from "./engine-life-suite.ts";
import { defineReachSuite } from "./engine-reach-suite.ts";
import { containers, settingsFor } from "./engine-runtime.ts";
import { describeWithEngine } from "./with-engine.ts";

/** Everything that sandboxes promise, in containers of one engine. Floods take minutes: test/load. */
export function defineEngineSuite(kind: EngineKind): void {
  describeWithEngine(kind, (engine) => {
    defineToolSuite(["http"], () => settingsFor(engine()));
    describe("attacks:", () => {
      defineAttackSuite(containers(engine));
    });
    describe("lives:", () => {
      defineLifeSuite(engine);
    });
    describe("reach:", () => {
      defineReachSuite(engine);
    });
  });
}
