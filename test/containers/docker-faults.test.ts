import { defineFaultSuite } from "./engine-fault-suite.ts";
import { describeWithEngine } from "./with-engine.ts";

// Fifty of them are in test/long.
describeWithEngine("docker", (engine) => defineFaultSuite(engine, 8), { diskMb: 1500 });
