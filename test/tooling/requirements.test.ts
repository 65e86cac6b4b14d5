import { describe, expect, it } from "vitest";
import { judge, parseCriteria, provenIn, renderRequirements, tagsOf, type TestOutcome } from "../setup/requirements.ts";

const criteria = parseCriteria(
  "id\twhat must hold\n001-one\tthe first | thing\n001-two\tthe second\n002-R1.1\tthe third\n",
);

function outcome(name: string, state: TestOutcome["state"] = "passed"): TestOutcome {
  return { file: "test/unit/a.test.ts", name, state };
}

describe("tags", () => {
  it("reads several ids from one name", () => {
    expect(tagsOf("server > [001-one][002-R1.1] answers")).toEqual(["001-one", "002-R1.1"]);
  });

  it("takes protocol revisions, codes and indexes for what they are", () => {
    expect(tagsOf("[2025-11-25] answers -32600 for [0] and [ref_1]")).toEqual([]);
  });
});

describe("the verdict of a run", () => {
  it("counts a criterion as proven when a test that names it passes", () => {
    const verdict = judge({ criteria, tests: [outcome("[001-one] holds")], recorded: [] });
    expect(verdict).toEqual({ proven: new Set(["001-one"]), lost: [], unrecorded: ["001-one"], unknown: [] });
  });

  it("does not count a criterion of which one test passes and another fails", () => {
    const tests = [outcome("[001-one] holds here"), outcome("[001-one] holds there", "failed")];
    expect(judge({ criteria, tests, recorded: ["001-one"] })).toMatchObject({ proven: new Set(), lost: ["001-one"] });
  });

  it("loses a recorded criterion when its test is skipped", () => {
    const verdict = judge({ criteria, tests: [outcome("[001-two] holds", "skipped")], recorded: ["001-two"] });
    expect(verdict.lost).toEqual(["001-two"]);
  });

  it("loses a recorded criterion when its test is gone", () => {
    expect(judge({ criteria, tests: [], recorded: ["002-R1.1"] }).lost).toEqual(["002-R1.1"]);
  });

  it("loses a recorded criterion that the list no longer has", () => {
    const verdict = judge({ criteria, tests: [outcome("[009-x] holds")], recorded: ["009-x"] });
    expect(verdict).toMatchObject({ lost: ["009-x"], unknown: ["009-x in test/unit/a.test.ts: [009-x] holds"] });
  });
});

describe("docs/requirements.md", () => {
  it("gives back the proven ids that were written into it", () => {
    const text = renderRequirements(criteria, [
      outcome("[001-one][002-R1.1] holds | always"),
      outcome("[001-two] x", "failed"),
    ]);
    expect(provenIn(text)).toEqual(["001-one", "002-R1.1"]);
    expect(text).toContain("2 of 3 criteria are proven.");
    expect(text).toContain(String.raw`| 001-one | proven | the first \| thing | [unit/a](../test/unit/a.test.ts) |`);
    expect(text).toContain("| 001-two | open | the second |  |");
  });

  it("says what the files of one tier prove", () => {
    const proves = (name: string, file: string): TestOutcome => ({ ...outcome(name), file });
    const text = renderRequirements(criteria, [
      proves("[001-one] holds", "test/e2e/a.test.ts"),
      proves("[001-one] holds", "test/vm/b.test.ts"),
      proves("[001-two] holds", "test/vm/b.test.ts"),
    ]);
    expect(provenIn(text, (file) => file.startsWith("test/e2e/"))).toEqual(["001-one"]);
    expect(provenIn(text, (file) => file.startsWith("test/vm/"))).toEqual(["001-one", "001-two"]);
  });

  it("does not depend on the order in which tests ended", () => {
    const tests = [outcome("[001-one] b"), outcome("[001-one] a")];
    expect(renderRequirements(criteria, tests)).toBe(renderRequirements(criteria, tests.toReversed()));
  });
});
