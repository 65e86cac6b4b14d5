import { describe, expect, test } from "vitest";
import { ROUTES } from "../../../src/transport/http/http-routes.ts";
import { methodsOf, type Route, RouteTable } from "../../../src/transport/http/route-table.ts";

const route = (path: string, methods: Route["methods"] = ["GET"]): Route => ({
  path,
  methods,
  role: "client",
  about: "",
  serve: () => undefined,
});

describe("the route table", () => {
  const table = new RouteTable([
    route("/files", ["GET", "HEAD"]),
    route("/files", ["PUT"]),
    route("/rows/export"),
    route("/rows/{seq}"),
    route("/boxes/{id}/files/{path...}"),
    route("/a.b/{name}"),
  ]);
  const found = (path: string): unknown => {
    const match = table.find(path);
    return match && [match.routes[0]?.path, ...match.parts];
  };

  test.each([
    ["/files", ["/files"]],
    ["/rows/export", ["/rows/export"]],
    ["/rows/7", ["/rows/{seq}", "7"]],
    ["/boxes/one/files/a/b%2Fc", ["/boxes/{id}/files/{path...}", "one", "a/b%2Fc"]],
    ["/boxes/one/files/", ["/boxes/{id}/files/{path...}", "one", ""]],
    ["/a.b/c\nd", ["/a.b/{name}", "c\nd"]],
  ])("finds %s", (path, expected) => {
    expect(found(path)).toEqual(expected);
  });

  test.each(["/files/", "/Files", "/rows/", "/rows/1/2", "/boxes//files/a", "/boxes/one/files", "/axb/c"])(
    "does not find %s",
    (path) => {
      expect(found(path)).toBeUndefined();
    },
  );

  test("knows all methods of a path", () => {
    const match = table.find("/files");
    expect(match && methodsOf(match)).toBe("GET, HEAD, PUT");
  });
});

test("each method of a path is served by one route, and all of its routes have guards of the same kind", () => {
  const paths = new Set(ROUTES.map(({ path }) => path));
  for (const path of paths) {
    const routes = ROUTES.filter((each) => each.path === path);
    const methods = routes.flatMap((each) => each.methods);
    expect([path, new Set(methods).size]).toEqual([path, methods.length]);
    const isGuarded = routes.map(({ role }) => role === "server" || role === "page");
    expect([path, new Set(isGuarded).size]).toEqual([path, 1]);
  }
});
