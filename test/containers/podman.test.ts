import { defineEngineSuite } from "./engine-suite.ts";

defineEngineSuite("podman");
