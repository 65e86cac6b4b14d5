import type { JSX } from "preact";
import { LedgerList } from "./ledger-list-view.tsx";
import { LedgerCall } from "./ledger-call.tsx";

export function LedgerView({ rest: [seq] }: { readonly rest: readonly string[] }): JSX.Element {
  return seq === undefined ? <LedgerList /> : <LedgerCall key={seq} seq={seq} />;
}
