import { afterAll, beforeAll } from "vitest";
import {
  type ContainerEngine,
  type EngineKind,
  type EngineOptions,
  startEngine,
  whyNoEngine,
} from "../services/container-engine.ts";
import { describeUnless } from "../setup/mandatory.ts";

/** Tests with an engine of their own, which starts with the first and ends with the last of them. */
export function describeWithEngine(
  kind: EngineKind,
  define: (engine: () => ContainerEngine) => void,
  options: EngineOptions = {},
): void {
  describeUnless(whyNoEngine(kind), `in containers of ${kind}`, () => {
    let engine: ContainerEngine | undefined;
    beforeAll(async () => {
      engine = await startEngine(kind, options);
    });
    afterAll(async () => await engine?.stop());
    define(() => {
      if (engine === undefined) throw new Error("the engine has not started");
      return engine;
    });
  });
}
