import { defineFaultSuite } from "./engine-fault-suite.ts";
import { describeWithEngine } from "./with-engine.ts";

// Few: it is the engine's answers that differ from Docker's, not their number.
describeWithEngine("podman", (engine) => defineFaultSuite(engine, 4), { diskMb: 1500 });
