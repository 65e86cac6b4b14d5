import { expect, test } from "vitest";
import { UriPattern } from "../../../src/capabilities/uri-pattern.ts";

const FILES = new UriPattern("sandbox://{id}/{+path}{?offset,length}");

test.each([
  ["sandbox://a/b.txt", { id: "a", path: "b.txt" }],
  ["sandbox://a/b/c%20d.txt", { id: "a", path: "b/c d.txt" }],
  ["sandbox://a//tmp/x", { id: "a", path: "/tmp/x" }],
  ["sandbox://a/b?offset=5", { id: "a", path: "b", offset: "5" }],
  ["sandbox://a/b?length=1&offset=2", { id: "a", path: "b", offset: "2", length: "1" }],
  ["sandbox://a/b?", { id: "a", path: "b" }],
])("%s fits a template with a path and a query", (uri, variables) => {
  expect(FILES.match(uri)).toEqual(variables);
});

test.each([
  "sandbox://a/",
  "sandbox:///b",
  "sandbox://a/b?other=1",
  "sandbox://a/b?offset=1&offset=2",
  "sandbox://a/b#c",
  "sandbox://a/%zz",
])("%s does not", (uri) => {
  expect(FILES.match(uri)).toBeUndefined();
});

test("a plain variable holds no slash", () => {
  expect(new UriPattern("orders://{id}").match("orders://a/b")).toBeUndefined();
});

test.each(["x://{a}{a}", "x://{*a}", "x://{a}{?a}", "x://{+}"])("the template %s is refused", (template) => {
  expect(() => new UriPattern(template)).toThrow(TypeError);
});
