import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, type LogLine, startHttp } from "../harness.ts";
import { plain, plainCall } from "../http-client.ts";
import { skill } from "../skill-fixture.ts";
import { text } from "../wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-told-"));
const at = (name: string): string => path.join(folder, name);
const FILES = {
  "handlers/a.ts": '/** Same. */\nexport function same(): string { return "a"; }\n',
  "handlers/b.ts": '/** Same. */\nexport function same(): string { return "b"; }\n',
  "handlers/c.py": 'def same() -> str:\n    """Same."""\n    return "c"\n',
  "handlers/own.ts": '/** Takes a built-in name. */\nexport function skill_search(): string { return "mine"; }\n',
  "handlers/twice.ts": `import { defineHandler } from "owlclaw";
export const first = defineHandler({ name: "twice", description: "First.", run: () => "first" });
export const another = defineHandler({ name: "twice", description: "Second.", run: () => "second" });
`,
  "handlers/half.ts":
    "/** Fine. @skill ops/nowhere */\nexport function fine(): void {}\n/** Bad. */\nexport function bad(m: Map<string, string>): void {}\n",
  "handlers/broken.ts": "export const = ;",
  "skills/ops/deploy/SKILL.md": skill("deploy", "Deploys."),
  "skills/ops/bad/SKILL.md": "---\nname: [bad\n",
  "skills/ops/loose/SKILL.md": skill("other", "Loose."),
};

let server: HttpServer;

beforeAll(async () => {
  for (const [name, content] of Object.entries(FILES)) {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    writeFileSync(at(name), content);
  }
  const paths = [at("handlers"), at("nowhere"), at("handlers/*.rb")];
  server = await startHttp({ config: { handlers: { paths }, skills: { dir: at("skills") } } });
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const told = (message: string): LogLine[] =>
  server.logs.filter((line) => line["message"] === message).map(({ time: _time, level: _level, ...facts }) => facts);

describe("what an operator is told of files that cannot be served as they are", () => {
  test("a name that is taken: which file, whose it is, and what to do", async () => {
    const fix = "rename one of them";
    const clash = { message: "handler cannot be used", list: "tools", fix };
    const taken = { ...clash, name: "same", reason: `${at("handlers/a.ts")} has a tool "same" already` };
    expect(told("handler cannot be used")).toEqual(
      expect.arrayContaining([
        { ...taken, file: at("handlers/b.ts") },
        { ...taken, file: at("handlers/c.py") },
        {
          ...clash,
          file: at("handlers/own.ts"),
          name: "skill_search",
          reason: 'the server has a tool "skill_search" of its own',
        },
      ]),
    );
    expect(text((await plainCall(server.url, "same")).body)).toBe("a");
  });

  test("a name that a file defines twice is told, and one of them is served whole", async () => {
    const reason = 'the file defines the tool "twice" twice: rename one of them';
    expect(told("handler cannot be used")).toContainEqual(
      expect.objectContaining({ file: at("handlers/twice.ts"), reason }),
    );
    const { tools } = (await plain(server.url, "tools/list")).body.result ?? {};
    const served = tools.filter(({ name }: { name: string }) => name === "twice");
    const called = text((await plainCall(server.url, "twice")).body);
    expect(served).toHaveLength(1);
    expect([served[0].description, called]).toContainEqual(called === "first" ? "First." : "Second.");
  });

  test("one function, or a whole file", () => {
    expect(told("handler cannot be used")).toContainEqual(
      expect.objectContaining({
        file: at("handlers/half.ts"),
        reason: expect.stringMatching(/^bad: m has the type Map/),
      }),
    );
    const files = told("handler file cannot be used").map(({ file }) => file);
    expect(new Set(files)).toEqual(new Set([at("handlers/*.rb"), at("handlers/broken.ts"), at("nowhere")]));
  });

  test("a skill that a tool names and that is not there", () => {
    expect(told("tools name a skill that is not there")).toEqual([
      expect.objectContaining({ skill: "skill://ops/nowhere", tools: ["fine"], fix: expect.any(String) }),
    ]);
  });

  test("skills, with file, line, reason and fix", () => {
    expect(told("skill cannot be used")).toEqual([
      {
        message: "skill cannot be used",
        file: at("skills/ops/bad/SKILL.md"),
        line: 1,
        reason: "the frontmatter has no end",
        fix: "close the frontmatter with a line ---",
      },
    ]);
    expect(told("skill should be corrected")).toMatchObject([{ file: at("skills/ops/loose/SKILL.md"), line: 1 }]);
  });
});
