import { afterAll, beforeAll, describe } from "vitest";
import {
  type ContainerEngine,
  type EngineKind,
  type EngineOptions,
  startEngine,
  whyNoEngine,
} from "../services/container-engine.ts";

/** Tests with an engine of their own, which starts with the first and ends with the last of them. */
export function describeWithEngine(
  kind: EngineKind,
  define: (engine: () => ContainerEngine) => void,
  options: EngineOptions = {},
): void {
  const reason = whyNoEngine(kind);
  const note = reason === undefined ? "" : ` (${reason})`;
  describe.skipIf(reason !== undefined)(`in containers of ${kind}${note},`, () => {
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
