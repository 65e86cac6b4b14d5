import { beforeEach } from "vitest";
import { defineAttackSuite } from "./sandbox-attack-suite.ts";
import { bubblewrap } from "./test-runtime.ts";

// The twin of this file runs the same for every user.
beforeEach((context) => {
  if (process.getuid?.() !== 0) context.skip("only root can show what root has");
});

defineAttackSuite(bubblewrap("root", () => undefined));
