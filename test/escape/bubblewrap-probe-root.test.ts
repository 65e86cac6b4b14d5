import { beforeEach, describe } from "vitest";
import { isRoot } from "./bubblewrap-instances.ts";
import { defineProbeSuite } from "./bubblewrap-probe-suite.ts";

// What root has can be shown by root alone; the twin of this file runs for every user.
describe("with every privilege", () => {
  beforeEach((context) => {
    if (!isRoot) context.skip("only root can show what root has");
  });
  defineProbeSuite({ name: "root", unkept: [] });
});
