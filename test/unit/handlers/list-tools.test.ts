import { describe, expect, test } from "vitest";
import { Registry, Changes } from "../../../src/capability/registry.ts";
import { compileTool } from "../../../src/capability/define-tool.ts";
import { Lifeline } from "../../../src/call/lifeline.ts";
import type { Caller } from "../../../src/call/call.ts";
import { Pipeline } from "../../../src/call/pipeline.ts";
import type { SkillTexts } from "../../../src/capability/skill.ts";
import { silentConversation } from "../../../src/mcp/conversations/silent.ts";
import { Mcp } from "../../../src/mcp/mcp.ts";
import { listTools } from "../../../src/mcp/methods/list-tools.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

const caller = (protocolVersion: string): Caller => ({
  principal: { id: "p", scopes: [], claims: {} },
  label: undefined,
  transport: "http",
  protocolVersion,
  sessionId: undefined,
});
const OLD = caller("2025-11-25");
const NEW = caller("2026-07-28");

function list(mcp: Mcp, cursor: string | undefined, by: Caller): Promise<Record<string, unknown>> {
  const conversation = silentConversation(mcp.changes);
  return listTools(mcp, cursor, {
    caller: by,
    traceId: "t",
    life: new Lifeline(),
    capabilities: {},
    conversation,
    inputResponses: undefined,
    requestState: undefined,
  });
}

function serve(skillTexts?: SkillTexts): { mcp: Mcp; registry: Registry } {
  const registry = new Registry();
  const pipeline = new Pipeline({ registry, timeoutMs: 1, progressAfterMs: 1, maxResultChars: 1000, skillTexts });
  const serverInfo = { name: "o", title: "O", version: "1" };
  return {
    registry,
    mcp: new Mcp({ pipeline, changes: new Changes(), logger: SILENT_LOGGER, serverInfo, withStack: false }),
  };
}

const tool = (name: string, more: object = {}) =>
  compileTool({ name, description: `Does ${name}`, run: () => "", ...more });

describe("tools/list", () => {
  test("[004-R4.10] a page is rendered once while nothing changed, and anew after a change", async () => {
    const { mcp, registry } = serve();
    for (let index = 0; index < 150; index++) registry.addTool(tool(`tool_${String(index).padStart(3, "0")}`));
    const first = await list(mcp, undefined, NEW);
    const cursor = String(first["nextCursor"]);
    const second = await list(mcp, cursor, NEW);
    expect(await list(mcp, undefined, NEW)).toBe(first);
    expect(await list(mcp, cursor, NEW)).toBe(second);
    registry.addTool(tool("another"));
    expect(await list(mcp, undefined, NEW)).not.toBe(first);
    expect((await list(mcp, undefined, NEW))["tools"]).toHaveLength(100);
  });

  test("cost, time-out, confirmation and skill are in _meta", async () => {
    const { mcp, registry } = serve();
    registry.addTool(
      tool("dear", { cost: { fixed: 2, max: 9 }, timeoutMs: 50, confirm: "operator", skill: "a/b", _meta: { own: 1 } }),
    );
    registry.addTool(tool("plain"));
    expect((await list(mcp, undefined, NEW))["tools"]).toMatchObject([
      {
        _meta: {
          "owlclaw/constraints": { cost: { fixed: 2, reserved: 9 }, timeout_ms: 50, confirm: "operator" },
          "owlclaw/skill": "skill://a/b",
          own: 1,
        },
      },
      { name: "plain" },
    ]);
    expect(JSON.stringify(await list(mcp, undefined, NEW))).not.toContain('"plain","_meta"');
  });

  test("[004-R4.6] a linked skill stands in the description, and a change of the skill shows", async () => {
    const texts = { version: 0, text: "Skill skill://a/b: how to", of: (): string => texts.text };
    const { mcp, registry } = serve(texts);
    registry.addTool(tool("linked", { skill: "a/b" }));
    const described = async (): Promise<unknown> => (await list(mcp, undefined, NEW))["tools"];
    expect(await described()).toMatchObject([{ description: "Does linked\n\nSkill skill://a/b: how to" }]);
    texts.text = "Skill skill://a/b: how else";
    texts.version += 1;
    expect(await described()).toMatchObject([{ description: "Does linked\n\nSkill skill://a/b: how else" }]);
  });

  test("an output that is no object stands in a field for revisions that know only objects", async () => {
    const { mcp, registry } = serve();
    registry.addTool(tool("number", { output: { type: "number", $defs: { a: {} } } }));
    registry.addTool(tool("object", { output: { type: "object" } }));
    expect((await list(mcp, undefined, OLD))["tools"]).toMatchObject([
      {
        outputSchema: {
          type: "object",
          properties: { result: { type: "number" } },
          required: ["result"],
          $defs: { a: {} },
        },
      },
      { outputSchema: { type: "object" } },
    ]);
    expect((await list(mcp, undefined, NEW))["tools"]).toMatchObject([{ outputSchema: { type: "number" } }, {}]);
  });
});
