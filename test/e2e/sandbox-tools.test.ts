import { defineToolSuite } from "./sandbox-tool-suite.ts";

defineToolSuite(["stdio", "http"], () => ({}));
