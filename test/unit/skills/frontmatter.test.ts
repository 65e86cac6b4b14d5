import { describe, expect, it } from "vitest";
import { readFrontmatter, readMetadata } from "../../../src/skills/frontmatter.ts";

function read(yaml: string, folder = "refund") {
  const frontmatter = readFrontmatter(`---\n${yaml}\n---\n\n# Title\n\nThe first\nparagraph.\n`);
  if (!frontmatter.ok) throw new Error(`${frontmatter.line}: ${frontmatter.message}`);
  return readMetadata(frontmatter.values, { folder, body: frontmatter.body });
}

describe("frontmatter", () => {
  it("[004-R6.4] the standard's keys are read", () => {
    const { metadata, findings } = read(
      'name: refund\ndescription: Pays back\nlicense: MIT\ncompatibility: needs python\nallowed-tools: code_run file_read\nmetadata:\n  version: "2"\n  tags: money, returns',
    );
    expect(findings).toEqual([]);
    expect(metadata).toEqual({
      name: "refund",
      title: undefined,
      description: "Pays back",
      tags: ["money", "returns"],
      version: "2",
      license: "MIT",
      compatibility: "needs python",
      allowedTools: ["code_run", "file_read"],
      riskLevel: undefined,
      requiresConfirmation: undefined,
      constraints: undefined,
    });
  });

  it("older keys are read wherever they stand", () => {
    const { metadata } = read(
      "name: refund\ndescription: x\ntags: [money, 7]\nowlclaw:\n  constraints:\n    max_daily_calls: 5\n    risk_level: high\n    requires_confirmation: true",
    );
    expect(metadata).toMatchObject({
      tags: ["money", "7"],
      riskLevel: "high",
      requiresConfirmation: true,
      constraints: { max_daily_calls: 5 },
    });
    expect(read("name: refund\ndescription: x\nrisk_level: low\nrequires_confirmation: no").metadata).toMatchObject({
      riskLevel: "low",
      requiresConfirmation: false,
    });
  });

  it("what is missing is made up for, and told", () => {
    const { metadata, findings } = read("license: MIT");
    expect(metadata).toMatchObject({ name: "refund", description: "The first paragraph." });
    expect(findings.map(({ message }) => message)).toEqual([
      "the frontmatter has no name",
      "the frontmatter has no description",
    ]);
  });

  it.each([
    ["name: Refund Policy\ndescription: x", "Refund Policy", /rules of the Agent Skills standard/],
    ["name: other\ndescription: x", "refund", /not the name of its folder/],
    [`name: refund\ndescription: ${"x".repeat(1025)}`, "refund", /longer than 1024/],
    [`name: refund\ndescription: x\ncompatibility: ${"x".repeat(501)}`, "refund", /longer than 500/],
    ["name: refund\ndescription: x\nmetadata:\n  tags: [a]", "refund", /metadata/],
  ])("breaking the standard is told: %#", (yaml, folder, message) => {
    expect(read(yaml, folder).findings.map((finding) => finding.message)).toEqual([expect.stringMatching(message)]);
  });

  it.each([
    ["no frontmatter", "# Title", 1],
    ["no end", "---\nname: x\n", 1],
    ["bad YAML", "---\nname: x\ndescription: [a\n---\n", 4],
    ["a key twice", "---\nname: x\nname: y\n---\n", 3],
    ["a list", "---\n- a\n---\n", 2],
    ["a tag of another program", "---\nname: !!js/function x\n---\n", 2],
    ["aliases", "---\na: &a [x]\nb: [*a, *a]\n---\n", 2],
    ["more than the limit", `---\nname: ${"x".repeat(70_000)}\n---\n`, 1],
    ["depth that would fill the stack", `---\na: ${"[".repeat(30_000)}\n---\n`, 2],
  ])("%s is refused with the line", (_what, text, line) => {
    expect(readFrontmatter(text)).toMatchObject({ ok: false, line, fix: expect.any(String) });
  });

  it("a bomb of aliases costs nothing", () => {
    const levels = Array.from({ length: 20 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i}, `.repeat(9)}*l${i}]`);
    expect(readFrontmatter(`---\nl0: &l0 x\n${levels.join("\n")}\n---\n`)).toMatchObject({ ok: false });
  });

  it("names of an object's own machinery are plain data", () => {
    const { metadata } = read("name: refund\ndescription: x\n__proto__:\n  tags: [evil]\nconstructor: y");
    expect(metadata.tags).toEqual([]);
    expect(Object.hasOwn(Object.prototype, "tags")).toBe(false);
  });

  it("CRLF and a byte order mark do no harm", () => {
    expect(readFrontmatter("\uFEFF---\r\nname: x\r\n---\r\nbody")).toEqual({
      ok: true,
      values: { name: "x" },
      body: "body",
    });
  });
});
