import { beforeAll } from "vitest";
import { becomeOrdinaryUser } from "../escape/bubblewrap-cells.ts";
import { defineControlSuite } from "../escape/sandbox-control-suite.ts";

beforeAll(becomeOrdinaryUser);

defineControlSuite("user");
