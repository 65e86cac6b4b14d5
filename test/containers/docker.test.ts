import { describe } from "vitest";
import { defineDoctorSuite } from "./engine-doctor-suite.ts";
import { defineImageSuite } from "./engine-image-suite.ts";
import { defineTlsTests } from "./engine-reach-suite.ts";
import { defineEngineSuite } from "./engine-suite.ts";

// What follows depends on the server alone: one engine shows it.
defineEngineSuite("docker", (engine) => {
  describe("images:", () => {
    defineImageSuite(engine);
  });
  defineDoctorSuite(engine);
  describe("reach:", () => {
    defineTlsTests(engine);
  });
});
