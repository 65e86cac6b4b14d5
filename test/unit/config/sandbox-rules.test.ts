import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, type ConfigIssue } from "../../../src/config/config-error.ts";
import { effectiveValues } from "../../../src/config/render-config.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { temporaryFolder } from "./temporary-folder.ts";

async function problems(sandbox: Readonly<Record<string, unknown>>, root = "data"): Promise<readonly ConfigIssue[]> {
  const cwd = temporaryFolder({ "mcp-server.yaml": JSON.stringify({ sandbox: { root, ...sandbox } }) });
  try {
    await loadConfig({ env: {}, cwd, acceptsUntrusted: true });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.issues;
    throw error;
  }
}

describe("rules of the network", () => {
  test.each([
    ["*", "it would allow every host", "list the hosts, or *.example.com for subdomains"],
    ["http://x", "it is a URL", "write the host name alone, as in example.com"],
    ["*.com", "covers a whole top-level domain", "name the host itself"],
    ["127.1", "the address is in an unusual spelling", "write 127.0.0.1"],
    ["a.com:0", "the port is not a number from 1 to 65535", "write a host such as"],
  ])("%s stops the start with the reason and what to write in its place", async (rule, reason, fix) => {
    const value = JSON.stringify(rule);
    const told = { value, reason: expect.stringContaining(reason), fix: expect.stringContaining(fix) };
    expect(await problems({ network: { allow: ["example.com", rule] } })).toMatchObject([
      { path: "sandbox.network.allow[1]", ...told, source: expect.stringMatching(/^mcp-server\.yaml:/) },
    ]);
    expect(await problems({ network: { templates: { node: ["npm", rule] } } })).toMatchObject([
      { path: "sandbox.network.templates.node[1]", ...told },
    ]);
  });

  test("all of them are named at once, beside a template that does not exist", async () => {
    const found = await problems({ network: { allow: ["*", "http://x"], templates: { nope: ["a.com"] } } });
    expect(found.map(({ path }) => path)).toEqual([
      "sandbox.network.allow[0]",
      "sandbox.network.allow[1]",
      "sandbox.network.templates",
    ]);
    expect(found[2]).toMatchObject({
      value: '"nope"',
      source: expect.stringMatching(/^mcp-server\.yaml:/),
      reason: "no such template was built",
      fix: expect.stringContaining("template list"),
    });
  });

  test("good rules, presets, and a template that was built are taken", async () => {
    const root = temporaryFolder();
    mkdirSync(join(root, "templates", "mine"), { recursive: true });
    writeFileSync(join(root, "templates", "mine", "template.json"), "{}");
    const allow = ["example.com", "*.example.com", "10.0.0.5:8080", "[::1]:9", "pip", "npm"];
    expect(await problems({ network: { allow, templates: { mine: ["a.com"], python: [] } } }, root)).toEqual([]);
  });
});

test("microsandbox is a runtime like the others, for all templates or for one", async () => {
  expect(await problems({ runtime: "microsandbox" })).toEqual([]);
  expect(await problems({ templates: { python: { runtime: "microsandbox" } } })).toEqual([]);
});

test("templates may be images, and those that nobody knows are refused", async () => {
  const boxed = { image: "science:3" };
  expect(await problems({ runtime: "docker", template: "science", templates: { science: boxed } })).toEqual([]);
  expect(await problems({ templates: { science: { runtime: "docker" } } })).toMatchObject([
    { path: "sandbox.templates" },
  ]);
});

test.each(["/opt/owlclaw", "/opt/owlclaw-node"])("the workspace cannot hide what is at %s", async (workspace) => {
  expect(await problems({ workspace })).toMatchObject([{ path: "sandbox.workspace" }]);
});

test("a variable that sandboxes reserve is named, with the reason", async () => {
  expect(await problems({ env: { PATH: "/x", OK: "1" } })).toMatchObject([
    { path: "sandbox.env.PATH", reason: expect.stringContaining("reserved"), value: "********" },
  ]);
  expect(await problems({ env: { "a b": "1" } })).toMatchObject([{ path: "sandbox.env.a b" }]);
});

test("variables of sandboxes are masked when there are any, and shown as none when there are none", async () => {
  const shown = async (env: Record<string, string>) => {
    const cwd = temporaryFolder({ "mcp-server.yaml": JSON.stringify({ sandbox: { env } }) });
    return effectiveValues(await loadConfig({ env: {}, cwd, acceptsUntrusted: true })).find(
      ({ path }) => path === "sandbox.env",
    );
  };
  expect(await shown({})).toMatchObject({ value: {}, text: "{}" });
  expect(await shown({ TOKEN: "x" })).toMatchObject({ value: "********", text: "********" });
});
