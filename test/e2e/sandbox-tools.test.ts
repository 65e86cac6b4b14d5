import { defineToolSuite } from "./sandbox-tool-suite.ts";

// Behind both transports is one engine (docs/decisions/023): in a short run stdio has the tools of sandbox-dialects.test.ts.
defineToolSuite(process.env["OWLCLAW_TEST_LONG"] === "1" ? ["http", "stdio"] : ["http"], () => ({}));
