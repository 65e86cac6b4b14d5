import { expect, test, vi } from "vitest";
import { serverLogger } from "../../../src/cli/command-logger.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { temporaryFolder } from "../config/temporary-folder.ts";
import { fakeTerminal } from "./fake-terminal.ts";

/** What the server's log writes to a terminal, or to something else. */
async function firstLine(env: Record<string, string>, errIsTty: boolean): Promise<string> {
  const terminal = fakeTerminal({ errIsTty });
  const loaded = await loadConfig({ env, cwd: temporaryFolder() });
  serverLogger(loaded, terminal).info("listening", { url: "http://127.0.0.1:8080/mcp" });
  await vi.waitFor(() => expect(terminal.written.err).toMatch(/\n$/), 20_000);
  return terminal.written.err.trimEnd();
}

test("the log is for a person where a terminal shows it, and JSON elsewhere", async () => {
  expect(await firstLine({}, true)).toMatch(/^\S+ +INFO +listening .*url=http:\/\/127\.0\.0\.1:8080\/mcp$/i);
  expect(JSON.parse(await firstLine({}, false))).toMatchObject({ level: "info", message: "listening" });
});

test("a format that somebody chose holds on a terminal too", async () => {
  const line = await firstLine({ MCP_SERVER_LOGGING_FORMAT: "json" }, true);
  expect(JSON.parse(line)).toMatchObject({ message: "listening" });
});
