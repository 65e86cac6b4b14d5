import { describe } from "vitest";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineMountedFolderSuite } from "../escape/mounted-folders-suite.ts";
import { defineAttackSuite } from "../escape/sandbox-attack-suite.ts";
import type { ContainerEngine, EngineKind } from "../services/container-engine.ts";
import { defineFloodTest } from "./engine-flood-test.ts";
import { defineHostileGuestTests } from "./engine-hostile-guest-suite.ts";
import { defineNetworkTest } from "./engine-reach-suite.ts";
import { defineLifeSuite } from "./engine-life-suite.ts";
import { defineLostSuite } from "./engine-lost-suite.ts";
import { containers, settingsFor } from "./engine-runtime.ts";
import { describeWithEngine } from "./with-engine.ts";

/** What sandboxes promise, in containers of one engine, and what `more` adds. All floods take minutes: test/long. */
export function defineEngineSuite(kind: EngineKind, more: (engine: () => ContainerEngine) => void = nothing): void {
  describeWithEngine(kind, (engine) => {
    defineToolSuite(["http"], () => settingsFor(engine()));
    describe("attacks:", () => {
      defineAttackSuite(containers(engine));
      defineMountedFolderSuite(containers(engine));
      defineFloodTest(engine);
      defineHostileGuestTests(engine);
    });
    describe("lives:", () => {
      defineLifeSuite(engine);
      defineLostSuite(engine);
      defineNetworkTest(engine);
    });
    more(engine);
  });
}

function nothing(): void {}
