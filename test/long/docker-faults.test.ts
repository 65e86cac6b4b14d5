import { defineFaultSuite } from "../containers/engine-fault-suite.ts";
import { describeWithEngine } from "../containers/with-engine.ts";

describeWithEngine("docker", (engine) => defineFaultSuite(engine, 50), { diskMb: 2500 });
