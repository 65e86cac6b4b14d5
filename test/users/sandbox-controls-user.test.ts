import { beforeAll } from "vitest";
import { becomeOrdinaryUser } from "../escape/bubblewrap-instances.ts";
import { defineControlSuite } from "../escape/sandbox-control-suite.ts";

beforeAll(becomeOrdinaryUser);

defineControlSuite("user");
