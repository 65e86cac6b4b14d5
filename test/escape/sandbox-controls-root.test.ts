import { beforeEach } from "vitest";
import { isRoot } from "./bubblewrap-instances.ts";
import { defineControlSuite } from "./sandbox-control-suite.ts";

// The twin of this file runs the same for every user.
beforeEach((context) => {
  if (!isRoot) context.skip("only root can show what root has");
});

defineControlSuite("root");
