import { containers } from "../containers/engine-runtime.ts";
import { describeWithEngine } from "../containers/with-engine.ts";
import { defineFloodSuite } from "../escape/sandbox-flood-suite.ts";

describeWithEngine("podman", (engine) => defineFloodSuite(containers(engine)));
