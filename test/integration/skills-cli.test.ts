import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { SHOP, skillFolder, writeSkills } from "./skill-fixture.ts";

const { "support/broken/SKILL.md": _broken, ...good } = SHOP;
const whole = skillFolder(good);
const broken = skillFolder({ ...SHOP, "support/loose/SKILL.md": "---\nname: other\ndescription: x\n---\n" });

function skills(...argv: string[]) {
  return runCli(["mcp-server", "skills", ...argv]);
}

describe("owlclaw mcp-server skills", () => {
  test("list prints a table, and JSON with --json", async () => {
    const { code, out } = await skills("list", "--skills", whole);
    expect(code).toBe(0);
    expect(out.split("\n").map((line) => line.split(/\s{2,}/)[0])).toEqual([
      "URI",
      "skill://ecommerce/refund",
      "skill://ecommerce/returns/label",
      "skill://support/tone",
      "",
    ]);
    const json = await skills("list", "--skills", whole, "--json");
    expect(JSON.parse(json.out).skills[0]).toMatchObject({
      uri: "skill://ecommerce/refund",
      category: "ecommerce",
      tags: ["money", "returns"],
      files: ["SKILL.md", "assets/logo.png", "references/limits.md"],
    });
  });

  test("[004-R6.5] [004-R6.6] list and search filter by category, tag and wildcard", async () => {
    const uris = async (...argv: string[]): Promise<string[]> => {
      const { out } = await skills(...argv, "--skills", whole, "--json");
      return JSON.parse(out).skills.map(({ uri }: { uri: string }) => uri);
    };
    expect(await uris("list", "--category", "ecommerce")).toHaveLength(2);
    expect(await uris("list", "--tag", "parcel")).toEqual(["skill://ecommerce/returns/label"]);
    expect(await uris("list", "skill://support/*")).toEqual(["skill://support/tone"]);
    expect(await uris("search", "customers")).toEqual(["skill://support/tone"]);
    expect(await uris("search", "nothing", "of", "it")).toEqual([]);
  });

  test("validate says where, what and how to mend it, and fails", async () => {
    const { code, out, err } = await skills("validate", "--skills", broken);
    expect(code).toBe(1);
    const [first = "", second = ""] = err.split("\n");
    expect(first).toMatch(/^support\/broken\/SKILL\.md:3: error: .+; correct the YAML$/);
    expect(second).toBe(
      'support/loose/SKILL.md:1: warning: its name "other" is not the name of its folder, "loose"; give the folder and the skill one name',
    );
    expect(out).toContain("4 served, 1 with errors, 1 warnings.");
    const json = await skills("validate", "--skills", broken, "--json");
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({
      skills: 4,
      problems: [{ path: "support/broken/SKILL.md", line: 3, severity: "error" }, { severity: "warning" }],
    });
  });

  test("validate is content with good skills; config validate looks at them too", async () => {
    expect((await skills("validate", "--skills", whole)).code).toBe(0);
    const config = path.join(skillFolder({}), "mcp-server.yaml");
    writeFileSync(config, JSON.stringify({ skills: { dir: broken } }));
    const { code, err } = await runCli(["mcp-server", "config", "validate", "--config", config]);
    expect(code).toBe(1);
    expect(err).toContain("support/broken/SKILL.md:3: error:");
  });

  test("a folder that is not there stops with the key to change; no folder at all is a wrong use", async () => {
    const missing = await skills("list", "--skills", path.join(whole, "nowhere"));
    expect(missing.code).toBe(2);
    expect(missing.err).toContain("skills.dir");
    const none = await skills("list");
    expect(none.code).toBe(2);
    expect(none.err).toContain("--skills");
  });

  test("names of hostile files reach the terminal as text only", async () => {
    const folder = skillFolder({});
    writeSkills(folder, {
      "a/evil/SKILL.md": '---\nname: evil\ndescription: "\\u001b[2J"\n---\n',
      "b\u001b[2J/x.md": "x",
    });
    const listed = await skills("list", "--skills", folder);
    const validated = await skills("validate", "--skills", folder);
    expect(listed.out + listed.err + validated.out + validated.err).not.toContain("\u001b");
  });
});
