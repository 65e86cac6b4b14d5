import { describe, expect, it } from "vitest";
import { compileTool } from "../../../src/capability/define-tool.ts";
import { Registry, type Tool } from "../../../src/capability/registry.ts";

function tool(name: string): Tool {
  return compileTool({ name, description: `does ${name}`, run: () => name });
}

describe("Registry.replace", () => {
  it("puts what a source brings in place of what it brought before, and leaves the rest alone", () => {
    const registry = new Registry();
    registry.addTool(tool("built_in"));
    registry.replace("handlers", { tools: [tool("old"), tool("kept")] });

    registry.replace("handlers", { tools: [tool("new"), tool("kept")] });

    expect(registry.tools().map(({ name }) => name)).toEqual(["built_in", "kept", "new"]);
    expect(registry.tool("old")).toBeUndefined();
  });

  it("says which lists changed, and none when the same things come again", () => {
    const registry = new Registry();
    const same = { tools: [tool("a")], resources: [{ uri: "x://y", name: "y", read: () => "" }] };

    expect(registry.replace("handlers", same).changed).toEqual(["tools", "resources"]);
    expect(registry.replace("handlers", same).changed).toEqual([]);
    expect(registry.replace("handlers", { ...same, tools: [tool("a")] }).changed).toEqual(["tools"]);
  });

  it("leaves a name with who had it first, and says so", () => {
    const registry = new Registry();
    const first = tool("taken");
    registry.addTool(first);

    const { refused } = registry.replace("handlers", { tools: [tool("taken"), tool("free"), tool("free")] });

    expect(refused).toEqual([
      { list: "tools", name: "taken" },
      { list: "tools", name: "free" },
    ]);
    expect(registry.tool("taken")).toBe(first);
  });

  it("gives an unlisted tool only where no listed one has its name", () => {
    const registry = new Registry();
    const unlisted = tool("shared");
    registry.addUnlisted(unlisted);
    expect(registry.tools()).toEqual([]);
    expect(registry.tool("shared")).toBe(unlisted);

    const listed = tool("shared");
    registry.replace("handlers", { tools: [listed] });
    expect(registry.tool("shared")).toBe(listed);

    registry.replace("handlers", {});
    expect(registry.tool("shared")).toBe(unlisted);
  });
});
