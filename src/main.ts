#!/usr/bin/env node
import process from "node:process";

const OLDEST_NODE = "20.19";

// An old Node cannot even load the rest, and would name a missing export in place of itself.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split(".").map(Number);
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  process.stderr.write(
    `owlclaw: Node ${OLDEST_NODE} or newer is needed; ${process.execPath} is ${process.versions.node}\n`,
  );
  process.exit(1);
}

const { runProcess } = await import("./cli/run.ts");
await runProcess();
