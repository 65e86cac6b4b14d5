import { expect, test } from "vitest";
import type { InstanceSpec } from "../../../../src/sandbox/runtimes/runtime.ts";
import { checkBelow, checkSpec, isBelow } from "../../../../src/sandbox/runtimes/start-request.ts";

const SPEC: InstanceSpec = {
  id: "owl-1",
  template: "python",
  resources: { cpus: 1, memoryBytes: 1, maxPids: 1, diskBytes: 1 },
  folder: "/data/sandboxes/owl-1",
  workspacePath: "/workspace",
  volumes: [],
  env: { GREETING: "a=b" },
};
const HOST = { dataFolder: "/data" };

test("a cell with an id, a folder below the data folder and variables is taken", () => {
  expect(() => checkSpec(SPEC, HOST)).not.toThrow();
});

test.each(["", "a/b", "..", "a b", "a\n", "x".repeat(129)])("%j is no id of a cell", (id) => {
  expect(() => checkSpec({ ...SPEC, id }, HOST)).toThrow("not an id of a sandbox");
});

test("an id may be no longer than its runtime allows", () => {
  expect(() => checkSpec({ ...SPEC, id: "x".repeat(81) }, { ...HOST, maxIdChars: 80 })).toThrow("not an id");
});

test.each(["/data", "/data/..", "/data/../etc", "/etc", "/data-other/x", "data/x"])(
  "%j is not below /data",
  (folder) => {
    expect(isBelow("/data", folder)).toBe(false);
    expect(() => checkBelow("/data", folder)).toThrow("must lie below the data folder");
    expect(() => checkSpec({ ...SPEC, folder }, HOST)).toThrow("must lie below the data folder");
  },
);

test.each([{ "": "x" }, { "A=B": "x" }, { "A\0": "x" }, { A: "x\0y" }])("%j is no environment", (env) => {
  expect(() => checkSpec({ ...SPEC, env }, HOST)).toThrow("not a variable of an environment");
});
