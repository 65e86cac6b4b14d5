import { expect, test } from "vitest";
import { loadMicrosandbox } from "../../../../../src/sandbox/runtimes/microsandbox/sdk.ts";

const Sandbox = Object.assign(() => undefined, { builder: () => undefined, listWith: () => undefined });

test("on Node 20 it is said that Node 22 is needed, and the package is not touched", async () => {
  const load = (): Promise<never> => Promise.reject(new Error("must not be loaded"));
  await expect(loadMicrosandbox({ nodeVersion: "v20.19.0", load })).rejects.toMatchObject({
    kind: "sandbox_unavailable",
    message: "microsandbox needs Node 22 or newer, and this is v20.19.0",
    hint: expect.stringContaining("Node 22 or newer"),
  });
});

test("without the package it is said what to install", async () => {
  const load = (): Promise<never> => Promise.reject(new Error("Cannot find package 'microsandbox' imported from x"));
  await expect(loadMicrosandbox({ nodeVersion: "v22.1.0", load })).rejects.toMatchObject({
    message: "the npm package microsandbox is not installed",
    hint: expect.stringContaining("npm install microsandbox"),
  });
});

test("a package that cannot be loaded says why: that of the platform may be missing", async () => {
  const load = (): Promise<never> => Promise.reject(new Error("Cannot find native binding.\nmore"));
  await expect(loadMicrosandbox({ nodeVersion: "v24.0.0", load })).rejects.toMatchObject({
    message: "microsandbox cannot be loaded: Cannot find native binding.",
  });
});

test("another version's package is refused", async () => {
  const load = (): Promise<unknown> => Promise.resolve({ MicroSandbox: () => undefined });
  await expect(loadMicrosandbox({ nodeVersion: "v22.0.0", load })).rejects.toThrow("has an unknown version");
});

test("machines are made here, even where the environment has a provider's key", async () => {
  const chosen: unknown[] = [];
  const sdk = { Sandbox, setDefaultBackend: (backend: unknown): void => void chosen.push(backend) };
  expect(await loadMicrosandbox({ nodeVersion: "v22.0.0", load: () => Promise.resolve(sdk) })).toBe(sdk);
  expect(chosen).toEqual(["local"]);
});

test("this installation has no such package, and says so on any Node", async () => {
  await expect(loadMicrosandbox()).rejects.toMatchObject({ facts: { reason: "package_missing" } });
});
