import { defineNetworkTest } from "./engine-reach-suite.ts";
import { describeWithEngine } from "./with-engine.ts";

// Inside they have a number that nobody knows outside.
describeWithEngine("docker", (engine) => defineNetworkTest(engine), { mapsUsers: true });
