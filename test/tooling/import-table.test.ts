import { describe, expect, it } from "vitest";
import { refusal } from "../../scripts/generators/import-table.ts";

function refused(path: string, imports: readonly string[]): string[] {
  return imports.filter((specifier) => refusal(path, specifier) !== undefined);
}

describe("imports go one way", () => {
  it.each([
    ["src/errors/a.ts", ["../config/schema.ts"]],
    ["src/config/a.ts", ["../telemetry/logger.ts"]],
    ["src/platform/a.ts", ["../auth/bearer-token.ts", "../call/a.ts"]],
    ["src/auth/a.ts", ["../mcp/a.ts"]],
    ["src/governance/a.ts", ["../tools/code/run.ts", "../capability/registry.ts", "../auth/bearer-token.ts"]],
    ["src/governance/ledger/a.ts", ["../policy/policy.ts", "../../auth/bearer-token.ts"]],
    ["src/tools/code/a.ts", ["../../governance/policy.ts", "../../sandbox/runtimes/runtime.ts"]],
    ["src/sandbox/runtimes/docker/a.ts", ["@modelcontextprotocol/server", "../../a.ts", "../../network/door.ts"]],
    ["src/capability/a.ts", ["../call/a.ts", "../handlers/a.ts", "@modelcontextprotocol/server"]],
    ["src/call/a.ts", ["../mcp/a.ts", "../tools/a.ts"]],
    ["src/mcp/a.ts", ["../transport/a.ts", "../server/a.ts"]],
    ["src/transport/a.ts", ["../server/a.ts", "../handlers/a.ts"]],
    ["src/server/a.ts", ["../cli/a.ts", "../main.ts", "../index.ts", "../../test/setup/a.ts"]],
    ["src/unheard/a.ts", ["../config/schema.ts"]],
  ])("%s may not import %j", (path, imports) => {
    expect(refused(path, imports)).toEqual(imports);
  });

  it.each([
    ["src/governance/a.ts", ["../auth/principal.ts", "../errors/owl-error.ts", "./budget.ts", "node:fs"]],
    ["src/governance/deep/a.ts", ["../../auth/principal.ts", "../../platform/process-identity.ts", "../budget.ts"]],
    ["src/tools/code/a.ts", ["../../sandbox/a.ts", "../sandbox/create.ts", "../../capability/define-tool.ts"]],
    ["src/mcp/a.ts", ["../call/a.ts", "../capability/a.ts", "@modelcontextprotocol/server"]],
    ["src/server/a.ts", ["../transport/a.ts", "../handlers/a.ts", "../auth/bearer-token.ts"]],
    ["src/cli/a.ts", ["../server/a.ts", "../config/schema.ts"]],
    ["src/tools/code/a.ts", ["../../../contract/guest.ts"]],
  ])("%s may import %j", (path, imports) => {
    expect(refused(path, imports)).toEqual([]);
  });
});
