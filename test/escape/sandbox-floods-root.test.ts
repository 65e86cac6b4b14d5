import { beforeEach } from "vitest";
import { defineFloodSuite } from "./sandbox-flood-suite.ts";

// The twin of this file runs the same for every user.
beforeEach((context) => {
  if (process.getuid?.() !== 0) context.skip("only root can show what root has");
});

defineFloodSuite("root", () => undefined);
