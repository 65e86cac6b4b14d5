import { beforeAll } from "vitest";
import { becomeOrdinaryUser } from "./bubblewrap-cells.ts";
import { defineControlSuite } from "./sandbox-control-suite.ts";

beforeAll(becomeOrdinaryUser);

defineControlSuite("user");
