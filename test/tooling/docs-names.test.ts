import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CLIENT_NAMES, targetOf } from "../../src/cli/install.ts";
import { ERROR_KINDS } from "../../src/errors/kinds.ts";
import { startHttp } from "../integration/harness.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { GUIDES, inlineCode, PAGES, pageText, ROOT, withoutCode } from "./docs-pages.ts";

const SOURCES: readonly string[] = ["src", "contract", "guest", "web", "examples"].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|tsx|mjs|py|md|yaml)$/.test(name) && !name.includes("node_modules"))
    .map((name) => readFileSync(join(ROOT, folder, name), "utf8")),
);

const HEALTH_CHECKS: readonly string[] = [
  ...readFileSync(join(ROOT, "src/operator/health-checks.ts"), "utf8").matchAll(/name: "(\w+)"/g),
].map(([, name = ""]) => name);

describe("errors", () => {
  const kinds = new Set(Object.keys(ERROR_KINDS));
  const codes = new Set(Object.values(ERROR_KINDS).flatMap(({ code, modernCode }) => [code, modernCode]));

  test("every kind of error that a table or an example names is in the registry", () => {
    const named = GUIDES.flatMap(({ path, text }) => {
      const tables = [...text.matchAll(/^\| kinds?\b[^|]*\|.*\n\|[-| ]+\|\n((?:\|.*\n)+)/gm)].flatMap(([, rows = ""]) =>
        [...rows.matchAll(/^\| ((?:`[a-z_]+`(?:, )?)+)/gm)].flatMap(([, cell = ""]) => inlineCode(cell)),
      );
      const examples = [...text.matchAll(/"kind": ?"(\w+)"/g)].map(([, kind = ""]) => kind);
      return [...tables, ...examples].map((kind) => ({ path, kind }));
    });
    expect(named.length).toBeGreaterThan(kinds.size);
    expect(named.filter(({ kind }) => !kinds.has(kind))).toEqual([]);
  });

  test("every code of JSON-RPC that the documentation names is that of a kind", () => {
    const named = GUIDES.flatMap(({ path, text }) =>
      [...text.matchAll(/(?<![\w-])-3[12]\d{3}\b/g)].map(([code]) => ({ path, code: Number(code) })),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter(({ code }) => !codes.has(code))).toEqual([]);
  });
});

/** Names of others, and ours that are put together from parts. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  "api_key",
  "npm_config_globalconfig",
  "npm_config_userconfig",
  "stdout_uri",
  "stdout_kept_bytes",
]);

test("every name of the documentation that is written as one of code is there in the code", () => {
  const words = new Set(SOURCES.flatMap((text) => text.match(/\b[a-z][a-z\d]*(?:_[a-z\d]+)+\b/g) ?? []));
  // Every check of health has its alerts.
  const isKnown = (code: string): boolean =>
    words.has(code) || ELSEWHERE.has(code) || HEALTH_CHECKS.some((check) => code === `${check}_recovered`);
  const unknown = GUIDES.flatMap(({ path, text }) =>
    inlineCode(text)
      .filter((code) => /^[a-z][a-z\d]*(?:_[a-z\d]+)+$/.test(code) && !isKnown(code))
      .map((code) => `${path}: ${code}`),
  );
  expect(unknown).toEqual([]);
});

test("every picture of the documentation is there", () => {
  const pictures = PAGES.flatMap(({ path, text }) =>
    [...withoutCode(text).matchAll(/\b(?:src|srcset)="([^"]+)"/g)].map(([, file = ""]) => join(path, "..", file)),
  );
  expect(pictures.length).toBeGreaterThanOrEqual(2);
  expect(pictures.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

describe("tools", () => {
  async function served(): Promise<readonly string[]> {
    const server = await startHttp({
      config: { sandbox: { enabled: true, root: temporaryFolder({}), pool: { size: 0 } } },
    });
    const answer = await fetch(`${server.origin}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    const { result } = (await answer.json()) as { result: { tools: { name: string }[] } };
    await server.stop();
    const own = /^(sandbox|code|shell|file|browser)_/;
    return result.tools.map(({ name }) => name).filter((name) => own.test(name));
  }

  test("the tables of tools in the README and in tools.md have every tool that is listed, and no other", async () => {
    const names = await served();
    for (const page of ["README.md", "docs/tools.md"]) {
      const [, rows = ""] = /^\| tool \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)/m.exec(pageText(page)) ?? [];
      const listed = [...rows.matchAll(/^\| ([^|]+)\|/gm)].flatMap(([, cell = ""]) => inlineCode(cell));
      expect({ page, listed: listed.toSorted() }).toEqual({ page, listed: names.toSorted() });
    }
  });
});

describe("clients", () => {
  const places = { homeFolder: "~", settingsFolder: "SETTINGS", projectFolder: "." };
  const entry = { command: "/path/to/owlclaw/owlclaw", args: ["mcp-server", "start"] };

  test("the blocks of the README are what install writes, but for what a client takes for granted", () => {
    const blocks = [...pageText("README.md").matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = ""]) =>
      JSON.parse(text),
    );
    const toBlock = (client: string): unknown => {
      const target = targetOf(client, "user", places);
      return target && { [target.key]: { owlclaw: target.toEntry(entry) } };
    };
    expect(blocks).toEqual([toBlock("cursor"), toBlock("vscode")]);
  });

  test("every client that install knows is named in the README and in installation.md", () => {
    for (const page of ["README.md", "docs/installation.md"])
      expect(CLIENT_NAMES.filter((name) => !pageText(page).includes(name))).toEqual([]);
  });
});

test("every alert has its place in the runbook", () => {
  const headings = [...pageText("docs/operations.md").matchAll(/^### (.+)$/gm)].flatMap(([, title = ""]) =>
    title.split(", "),
  );
  expect(HEALTH_CHECKS).toHaveLength(10);
  for (const check of HEALTH_CHECKS)
    expect(headings.some((heading) => heading === `${check}_down` || heading === `${check}_degraded`)).toBe(true);
  const events = SOURCES.flatMap((text) =>
    [...text.matchAll(/\balerts\.send\(\{\s*event: "(\w+)"/g)].map(([, event]) => event),
  );
  expect(events.length).toBeGreaterThanOrEqual(5);
  // That a trouble is over needs nobody.
  for (const event of events.filter((name) => name?.endsWith("_recovered") === false))
    expect(headings).toContain(event);
});
