import { afterAll, beforeAll } from "vitest";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { defineAttackSuite } from "../escape/sandbox-attack-suite.ts";
import { bubblewrap } from "../escape/test-runtime.ts";

// What an ordinary user cannot have is in docs/security.md; everything here he has.
let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());

defineAttackSuite(bubblewrap("user", () => account));
