import { describe } from "vitest";
import { defineDoctorSuite } from "./engine-doctor-suite.ts";
import { defineDockerfileTest } from "./engine-dockerfile-suite.ts";
import { defineImageSuite } from "./engine-image-suite.ts";
import { defineLateSuite } from "./engine-late-suite.ts";
import { defineRemovalSuite } from "./engine-removal-suite.ts";
import { defineRpcTest } from "./engine-rpc-suite.ts";
import { defineServerImageTest } from "./engine-server-image-suite.ts";
import { defineTlsTests } from "./engine-reach-suite.ts";
import { defineEngineSuite } from "./engine-suite.ts";

// What follows depends on the server alone: one engine shows it.
defineEngineSuite("docker", (engine) => {
  describe("images:", () => {
    defineImageSuite(engine);
    defineDockerfileTest(engine);
    defineServerImageTest(engine);
  });
  describe("trouble:", () => {
    defineLateSuite(engine);
    defineRemovalSuite(engine);
  });
  defineDoctorSuite(engine);
  defineRpcTest(engine);
  describe("reach:", () => {
    defineTlsTests(engine);
  });
});
