import { expect, it } from "vitest";
import type { CallContext } from "../../../src/capabilities/context.ts";
import { compileTool } from "../../../src/capabilities/define-tool.ts";
import { WorkerContext } from "../../../src/handlers/workers/worker-context.ts";
import { SkillLibrary } from "../../../src/skills/skill-library.ts";
import { skillSearch } from "../../../src/skills/skill-search-tool.ts";
import { manifest, skillFolder } from "./skill-folder.ts";

const contextOf = (id: string): CallContext =>
  new WorkerContext(
    1,
    { principal: { id, scopes: [], claims: {} }, traceId: "t", protocolVersion: "2025-11-25" },
    () => undefined,
  );

it("skill_search shows and counts only what its caller may see", async () => {
  const library = new SkillLibrary(
    await skillFolder({
      "shop/refund/SKILL.md": manifest("refund", "", "Money back"),
      "staff/salaries/SKILL.md": manifest("salaries", "", "Money for people"),
    }),
  );
  await library.refresh();
  const asked: string[] = [];
  const tool = compileTool(
    skillSearch(library, ({ principal }) => {
      asked.push(principal.id);
      return (uri) => principal.id === "boss" || !uri.startsWith("skill://staff/");
    }),
  );
  const search = (id: string) => tool.run({ query: "money", limit: 10 }, contextOf(id));
  expect(await search("clerk")).toMatchObject({
    structuredContent: { skills: [{ uri: "skill://shop/refund" }], total: 1 },
  });
  expect(await search("boss")).toMatchObject({ structuredContent: { total: 2 } });
  expect(asked).toEqual(["clerk", "boss"]);
});
