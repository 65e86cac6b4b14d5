import { defineFaultTest } from "./sandbox-fault-suite.ts";

defineFaultTest(() => undefined);
