import { beforeAll } from "vitest";
import { becomeOrdinaryUser } from "../escape/bubblewrap-instances.ts";
import { defineProbeSuite } from "../escape/bubblewrap-probe-suite.ts";

beforeAll(becomeOrdinaryUser);

// Without a control group of its own and without disks; the process limit holds by RLIMIT_NPROC inside the user namespace.
defineProbeSuite({ name: "an ordinary user", unkept: ["memory-limit", "cpu-limit", "workspace-limit"] });
