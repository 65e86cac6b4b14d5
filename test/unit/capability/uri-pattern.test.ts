import { expect, test } from "vitest";
import { UriPattern, SPELLINGS } from "../../../src/capability/uri-pattern.ts";

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

test("one URI for the same variables, in each way to write them", () => {
  const pattern = new UriPattern("orders://{region}/{+path}{?page,size}");
  const written = (uri: string) => SPELLINGS.map((spell) => pattern.write(pattern.match(uri) ?? {}, spell));
  expect(written("orders://a%2fb@c/x y/%25z")).toEqual([
    "orders://a%2Fb@c/x%20y/%25z",
    "orders://a%2Fb@c/x y/%25z",
    "orders://a%2Fb%40c/x%20y/%25z",
  ]);
  expect(written("orders://eu/a/b")).toEqual(["orders://eu/a/b", "orders://eu/a/b", "orders://eu/a/b"]);
  expect(pattern.query({ size: "a&b", page: "2", region: "x" })).toBe("?page=2&size=a%26b");
  expect(pattern.query({})).toBe("");
  expect(pattern.expand({ region: "a/b", path: "x%20y/z" })).toBe("orders://a%2Fb/x%20y/z");
  expect(pattern.expand({ region: "a" })).toBeUndefined();
  expect(pattern.match("orders://\ud800/x")).toBeUndefined();
  expect(pattern.write({ region: "\ud800", path: "x" }, encodeURIComponent)).toBeUndefined();
});
