import { expect, test } from "vitest";
import { draftFromEntry } from "../../../../src/governance/ledger/ledger.ts";
import { type Column, COLUMNS, type Draft } from "../../../../src/governance/ledger/row.ts";
import { createRedactor } from "../../../../src/telemetry/redact.ts";
import { sandboxFacts } from "../../../../src/call/ledger-facts.ts";
import { entry } from "./ledger-entry.ts";

const ID = "nq3Zt0v8Qd1yX6wB5k_hJ2-mLr9PsTuV";

function recorded(args: Record<string, unknown>, result: unknown = {}) {
  const draft = draftFromEntry(entry({ args, result, ...sandboxFacts(args, result) }), createRedactor());
  return { args: JSON.parse(column(draft, "args")), result: JSON.parse(column(draft, "result")) };
}

/** A draft has no `seq` yet, which is the first column. */
function column(draft: Draft, name: Column): string {
  return String(draft[COLUMNS.indexOf(name) - 1]);
}

test("an id that opens a sandbox is taken out wherever it stands, and the record is JSON still", () => {
  const text = `the key:\n${ID}`;
  const fields = { text, [`of ${ID}`]: 1 };
  const redacted = { text: "the key:\n[redacted]", "of [redacted]": 1 };
  const kept = { session_id: "[redacted]", ...redacted };
  expect(recorded({ session_id: ID, ...fields }, fields)).toEqual({ args: kept, result: redacted });
  const home = `abcdefghijkl.${ID}`;
  expect(recorded({ session_id: home, code: `x = ${home}` }).args).toEqual({
    session_id: "[redacted]",
    code: "x = [redacted]",
  });
});

test("an id is taken out though the record is cut in the midst of it", () => {
  const { args } = recorded({ session_id: ID, code: `${"x".repeat(3990)}${ID}` });
  expect(JSON.stringify(args)).not.toContain(ID.slice(0, 4));
});

test.each([0, 20])("an id in a URI is taken out, also in other signs than its own, from sign %i on", (at) => {
  const written = `${ID.slice(0, at)}%${ID.charCodeAt(at).toString(16)}${ID.slice(at + 1)}`;
  const { args } = recorded({ uri: `sandbox://${written}/a.txt`, note: `${ID} ${written}` });
  expect(args).toEqual({ uri: "sandbox://[redacted]/a.txt", note: "[redacted] [redacted]" });
});

test.each(['","code":"', "rm -rf /home", '"', "x".repeat(31)])(
  "what a caller calls session_id and is none hides nothing: %s",
  (id) => {
    const code = `run ${id} now`;
    expect(recorded({ session_id: id, code, times: 1 }).args).toEqual({ session_id: "[redacted]", code, times: 1 });
  },
);
