import { describe, expect, test } from "vitest";
import { compileTool } from "../../../src/capabilities/define-tool.ts";
import { Registry } from "../../../src/capabilities/registry.ts";
import { UriPattern } from "../../../src/capabilities/uri-pattern.ts";

const tool = (name: string) => compileTool({ name, description: "A tool", run: () => name });
const resource = (uri: string) => ({ uri, name: uri, read: () => uri });

describe("the registry", () => {
  test("lists in the order of names, whatever the order they came in, and the same list until something changes", () => {
    const registry = new Registry();
    for (const name of ["b", "a", "C", "_"]) registry.addTool(tool(name));
    const list = registry.tools();
    expect(list.map(({ name }) => name)).toEqual(["C", "_", "a", "b"]);
    expect(registry.tools()).toBe(list);
    registry.addTool(tool("d"));
    expect(registry.tools()).toHaveLength(5);
  });

  test("refuses two of a name", () => {
    const registry = new Registry();
    registry.addTool(tool("a"));
    expect(() => registry.addTool(tool("a"))).toThrow('already a tool named "a"');
    registry.addResource(resource("x://a"));
    expect(() => registry.addResource(resource("x://a"))).toThrow("already");
  });

  test("names of Object's own members are nothing special", () => {
    const registry = new Registry();
    for (const name of ["constructor", "__proto__", "toString"]) expect(registry.tool(name)).toBeUndefined();
  });

  test("finds the exact resource first, then a template", () => {
    const registry = new Registry();
    registry.addResource(resource("x://{id}"));
    registry.addResource(resource("x://one"));
    expect(registry.findResource("x://one")?.resource.pattern).toBeUndefined();
    expect(registry.findResource("x://two")?.variables).toEqual({ id: "two" });
    expect(registry.findResource("x://two/three")).toBeUndefined();
    expect(registry.findResource("x://{id}")?.variables).toEqual({ id: "{id}" });
  });
});

describe("URI templates", () => {
  test("give decoded variables", () => {
    const pattern = new UriPattern("orders://{region}/{id}.json");
    expect(pattern.match("orders://eu/a%20b%2Fc.json")).toEqual({ region: "eu", id: "a b/c" });
  });

  test.each(["orders://eu", "orders://eu/", "orders://eu/1/2.json", "orders://eu/%zz.json", "orders://eu/1xjson", ""])(
    "do not fit %s",
    (uri) => expect(new UriPattern("orders://{region}/{id}.json").match(uri)).toBeUndefined(),
  );

  test("that are no plain templates are refused with the reason", () => {
    expect(() => new UriPattern("x://{a*}")).toThrow("plain variable");
    expect(() => new UriPattern("x://{a}/{a}")).toThrow("twice");
  });

  test("take no longer for hostile URIs than their length", () => {
    const pattern = new UriPattern("x://{a}-{b}-{c}-{d}");
    expect(pattern.match(`x://${"-".repeat(300)}/`)).toBeUndefined();
  });
});
