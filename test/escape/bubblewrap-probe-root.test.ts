import { describe } from "vitest";
import { isRoot } from "./bubblewrap-cells.ts";
import { defineProbeSuite } from "./bubblewrap-probe-suite.ts";

// What root has can be shown by root alone; the twin of this file runs for every user.
describe.runIf(isRoot)("with every privilege", () => {
  defineProbeSuite({ name: "root", unkept: [] });
});
