import { beforeAll } from "vitest";
import { becomeOrdinaryUser } from "./bubblewrap-cells.ts";
import { defineProbeSuite } from "./bubblewrap-probe-suite.ts";

beforeAll(becomeOrdinaryUser);

// Without a control group of its own; the process limit holds by RLIMIT_NPROC inside the user namespace.
defineProbeSuite({ name: "an ordinary user", unkept: ["memory-limit", "cpu-limit"] });
