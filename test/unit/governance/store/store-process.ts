// Makes calls against the governance store of a place, and says on stdout which of them were settled, until it is
// refused by a limit or killed.
import { draftFromEntry } from "../../../../src/governance/ledger/ledger.ts";
import { createRedactor } from "../../../../src/telemetry/redact.ts";
import { entry } from "../ledger/ledger-entry.ts";
import { openStoreAt } from "./open-store-at.ts";

const [place = "", name = "", limit = "0"] = process.argv.slice(2);
const redactor = createRedactor([]);
const store = await openStoreAt(place);
const cap = { limit: Number(limit), rule: "rule" };
const counters = [{ key: "ada", perMinute: cap, perDay: cap, concurrency: { limit: 1e6, rule: "" }, budget: cap }];
let next = 0;

async function callUntilRefused(): Promise<void> {
  for (;;) {
    const traceId = `${name}-${(next += 1)}`;
    const row = { time: Date.now(), traceId, costMicros: 1 };
    const draft = draftFromEntry(entry({ ...row, outcome: "unknown" }), redactor);
    const [admission] = await store.admit([{ counters, reserveMicros: 1, draft }]);
    if (admission?.ok !== true) return;
    process.stdout.write(`admitted ${traceId}\n`);
    const { call } = admission.lease;
    await store.settle([{ call, costMicros: 1, draft: draftFromEntry(entry(row), redactor) }]);
    process.stdout.write(`settled ${traceId}\n`);
  }
}

process.stdout.write("open\n");
await Promise.all(Array.from({ length: 8 }, callUntilRefused));
await store.close();
