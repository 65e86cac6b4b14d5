import { setTimeout as delay } from "node:timers/promises";
import { defineHandler } from "owlclaw";

const STEP_MS = 50;

export const toolWithLogging = defineHandler({
  name: "test_tool_with_logging",
  description: "Sends three log messages while it runs",
  async run(_input, context) {
    context.log("info", "Tool execution started");
    await delay(STEP_MS, undefined, { signal: context.signal });
    context.log("info", "Tool processing data");
    await delay(STEP_MS, undefined, { signal: context.signal });
    context.log("info", "Tool execution completed");
    return "Tool with logging executed successfully";
  },
});

export const loggingTool = defineHandler({
  name: "test_logging_tool",
  description: "Sends a log message, which only a client that asked for it gets",
  run(_input, context) {
    context.log("info", "Diagnostic trace logging activated");
    return "Logging evaluated";
  },
});

export const toolWithProgress = defineHandler({
  name: "test_tool_with_progress",
  description: "Reports progress three times while it runs",
  async run(_input, context) {
    context.progress(0, { total: 100, message: "Started" });
    await delay(STEP_MS, undefined, { signal: context.signal });
    context.progress(50, { total: 100, message: "Half done" });
    await delay(STEP_MS, undefined, { signal: context.signal });
    context.progress(100, { total: 100, message: "Done" });
    return "Tool with progress executed successfully";
  },
});

export const reconnection = defineHandler({
  name: "test_reconnection",
  description: "Closes the client's stream before the result, which the client fetches on a new stream",
  async run(_input, context) {
    context.closeStream();
    await delay(2 * STEP_MS, undefined, { signal: context.signal });
    return "Reconnection test completed successfully";
  },
});
