import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { CONFIG_KEYS, CONFIG_TREE, findKey, isSection } from "../../src/config/keys.ts";
import { METRICS } from "../../src/telemetry/metrics/catalogue.ts";
import { startHttp } from "../integration/harness.ts";
import { fakeTerminal } from "../unit/cli/fake-terminal.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { GUIDES, inlineCode, PAGES, ROOT, withoutCode } from "./docs-pages.ts";

/** As GitHub makes anchors of headings. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/^#{1,6} (.+)$/gm);
  return new Set(
    [...headings].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test("every link of the documentation leads somewhere", () => {
  const broken = PAGES.flatMap(({ path, text }) =>
    [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = ""]) => link)
      .filter((link) => !/^(https?|mailto):/.test(link))
      .filter((link) => {
        const [file = "", anchor] = link.split("#");
        const target = file === "" ? join(ROOT, path) : join(ROOT, dirname(path), file);
        if (!existsSync(target)) return true;
        return anchor !== undefined && !anchorsOf(readFileSync(target, "utf8")).has(anchor);
      })
      .map((link) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

describe("commands", () => {
  const program = buildProgram({ terminal: fakeTerminal(), finish: () => undefined });

  /** What is wrong with a command line, if anything. */
  function faultOf(words: readonly string[]): string | undefined {
    let command: Command = program;
    for (const word of words) {
      const child: Command | undefined = command.commands.find((each) => each.name() === word);
      if (child !== undefined) command = child;
      else if (word.startsWith("--") && !knows(command, word.split("=")[0] ?? "")) return `no option ${word}`;
      else if (command.commands.length > 0 && !word.startsWith("-")) return `no command ${word}`;
    }
    return undefined;
  }

  const knows = (command: Command, flag: string): boolean =>
    flag === "--help" || command.options.some(({ long }) => long === flag);

  test("every command line of the documentation names commands and options that exist", () => {
    const lines = GUIDES.flatMap(({ path, text }) =>
      [
        ...text.matchAll(/(?:^\$ |`)(?:[A-Z_]+=\S+ )*(?:npx )?(?:\.\/)?owlclaw ((?:[^`\n|;&>$"'{\\<…]|<(?=\S))+)/gm),
      ].map(([, args = ""]) => ({ path, words: args.trim().split(/\s+/) })),
    );
    expect(lines.length).toBeGreaterThan(40);
    const faults = lines.flatMap(({ path, words }) => {
      const named = words.filter((word) => !/^[A-Z]+$|^\[|\]$/.test(word));
      const fault = faultOf(named);
      return fault === undefined ? [] : [`${path}: owlclaw ${words.join(" ")}: ${fault}`];
    });
    expect(faults).toEqual([]);
  });
});

test("every setting that the documentation names exists", () => {
  const sections = new Set([...CONFIG_TREE.children].filter(([, node]) => isSection(node)).map(([name]) => name));
  const prefixes = new Set(
    CONFIG_KEYS.flatMap(({ path }) => path.split(".").map((_, at, all) => all.slice(0, at + 1).join("."))),
  );
  const isKnown = (path: string): boolean => {
    // Keys of maps are the user's own.
    for (let parent = path; parent !== ""; parent = parent.slice(0, Math.max(0, parent.lastIndexOf(".")))) {
      if (findKey(parent) !== undefined)
        return parent === path || ["map", "list"].includes(findKey(parent)?.type ?? "");
    }
    return prefixes.has(path);
  };
  const unknown = GUIDES.flatMap(({ path, text }) =>
    inlineCode(text)
      .map((code) => /^([a-z][A-Za-z]*(?:\.[a-z][A-Za-z]*)+)(?:[:=].*)?$/.exec(code)?.[1])
      .filter(
        (key) => key !== undefined && sections.has(key.split(".")[0] ?? "") && !key.endsWith(".db") && !isKnown(key),
      )
      .map((key) => `${path}: ${key}`),
  );
  expect(unknown).toEqual([]);
});

test("every variable and every metric that the documentation names exists", () => {
  const variables = new Set([...CONFIG_KEYS.flatMap(({ env }) => env), "MCP_SERVER_CONFIG"]);
  const metrics = new Set<string>(Object.values(METRICS).map(({ name }) => name));
  const unknown = GUIDES.flatMap(({ path, text }) => [
    ...[...text.matchAll(/\b(?:MCP_SERVER|MCP_AUTH|OTEL)_[A-Z_]*[A-Z]\b/g)]
      .filter(([name]) => !variables.has(name))
      .map(([name]) => `${path}: ${name}`),
    ...[...text.matchAll(/\b(?:owlclaw|mcp_server|nodejs|process)_[a-z]+_[a-z_]*[a-z]\b/g)]
      .filter(
        ([name]) =>
          !metrics.has(name.replace(/_(count|sum|bucket)$/, "")) && /_(total|seconds|bytes|status|info)$/.test(name),
      )
      .map(([name]) => `${path}: ${name}`),
  ]);
  expect(unknown).toEqual([]);
});

const UNKNOWN_ROUTE = "/mcp/none";

test("every route that the documentation names is served", async () => {
  const server = await startHttp({
    config: {
      sandbox: { enabled: true, root: temporaryFolder({}), pool: { size: 0 } },
      // Some routes are there only where callers have names.
      auth: { enabled: true, jwt: { secret: "the secret of a test, long enough for any key" } },
    },
  });
  const routes = new Set(
    GUIDES.flatMap(({ text }) => inlineCode(text))
      .map(
        (code) =>
          /^(?:[A-Z, ]+ )?(\/(?:mcp|health|metrics|api|dashboard|\.well-known)(?:\/[\w{}./-]*)?)(?:\?.*)?$/.exec(
            code,
          )?.[1],
      )
      .filter((route) => route !== undefined),
  );
  expect(routes.size).toBeGreaterThan(10);
  const missing: string[] = [];
  for (const route of [...routes, UNKNOWN_ROUTE]) {
    // Ids are hexadecimal, and rows have numbers.
    const path = route
      .replaceAll(/\{[^}]*\}/g, "0")
      .replace("SEQ", "1")
      .replace(/\/files$/, "/files/");
    const answer = await fetch(`${server.origin}${path}`, {
      method: "OPTIONS",
      headers: { accept: "application/json" },
    });
    if ((await answer.text()).includes("route_not_found")) missing.push(route);
  }
  expect(missing).toEqual([UNKNOWN_ROUTE]);
  await server.stop();
});
