import { describe } from "vitest";
import { defineImageSuite } from "./engine-image-suite.ts";
import { defineRemotePodmanTest } from "./engine-reach-suite.ts";
import { defineEngineSuite } from "./engine-suite.ts";

defineEngineSuite("podman", (engine) => {
  describe("images:", () => {
    defineImageSuite(engine);
  });
  describe("reach:", () => {
    defineRemotePodmanTest(engine);
  });
});
