import { afterAll, beforeAll, beforeEach } from "vitest";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { defineFaultTest } from "../escape/sandbox-fault-suite.ts";

// No group of the kernel holds an ordinary user's sandboxes: what ends them when the server is killed is shown here.
let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());
beforeEach((context) => {
  if (process.getuid?.() !== 0) context.skip("only root can make an account whose processes can be told apart");
});

defineFaultTest(() => account);
